"""The backend `autodeploy`."""

from conformance.backends.autodeploy.backend import AutoDeployBackend

__all__ = ["AutoDeployBackend"]
