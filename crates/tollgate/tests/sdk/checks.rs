//! The tests and checks that the libraries bring along, in the words of their own tools. Those that want a server find it
//! in `TOLLGATE_BIN`.

use crate::languages::check;

#[test]
fn python_tests() {
    check("python", &["python", "-W", "error", "-m", "unittest", "discover", "-s", "tests", "-t", "."]);
}

#[test]
fn python_types_and_lints() {
    check("python", &["mypy"]);
    check("python", &["ruff", "check", "."]);
    check("python", &["ruff", "format", "--check", "."]);
}

/// The race detector wants a C compiler, as Rust does.
#[test]
fn go_tests() {
    for module in [".", "chilimit", "ginlimit", "grpclimit", "conformance"] {
        check("go", &["go", "vet", "-C", module, "./..."]);
        check("go", &["go", "test", "-C", module, "-race", "./..."]);
    }
}

#[test]
fn go_is_formatted() {
    check("go", &["sh", "-c", "test -z \"$(gofmt -l . | tee /dev/stderr)\""]);
}
