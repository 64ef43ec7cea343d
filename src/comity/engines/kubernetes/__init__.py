"""Guidance as a Kubernetes resource."""
