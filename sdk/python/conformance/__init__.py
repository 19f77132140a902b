"""The program that the conformance suite drives: `python -m conformance app FRAMEWORK` or `… client`."""
