// Command conformance is the program that the conformance suite drives, as sdk/conformance/README.md describes it.
package main

import (
	"fmt"
	"log"
	"os"
)

func main() {
	log.SetOutput(os.Stderr)
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "client":
		return answerLines()
	case len(args) == 2 && args[0] == "app":
		return serve(args[1])
	default:
		return fmt.Errorf("usage: conformance client | app nethttp|chi|gin")
	}
}
