"""The real Pi for tests: installed from a lock file, run over RPC or in a terminal, its model scripted."""
