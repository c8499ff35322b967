"""OpenVINO as a backend of the conformance suite."""
