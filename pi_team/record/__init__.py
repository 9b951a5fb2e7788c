"""One record on disk: the envelope, the publication protocol and its locks."""
