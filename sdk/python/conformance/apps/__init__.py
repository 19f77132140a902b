"""The example application of the conformance suite, in every framework that there is middleware for."""
