"""Checks the models of the specification with TLC against their manifest."""
