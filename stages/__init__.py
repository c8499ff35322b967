"""The suite: a module a stage. `pytest stages` in a checkout, `pytest --pyargs conformance.stages` where it is installed."""
