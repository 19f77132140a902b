//! The tests and checks that the libraries bring along, in the words of their own tools. Those that want a server find it
//! in `TOLLGATE_BIN`.

use std::fs;

use crate::languages::{check, root};

/// Libraries are released with the server, in its version.
#[test]
fn versions_are_in_step() {
    let version = env!("CARGO_PKG_VERSION");
    for (file, line) in [
        ("sdk/python/pyproject.toml", format!("\nversion = \"{version}\"\n")),
        ("sdk/python/tollgate/__init__.py", format!("\n__version__ = \"{version}\"\n")),
        ("sdk/go/doc.go", format!("\nconst Version = \"{version}\"\n")),
        ("sdk/go/chilimit/go.mod", format!("/sdk/go v{version}\n")),
        ("sdk/go/ginlimit/go.mod", format!("/sdk/go v{version}\n")),
        ("sdk/go/grpclimit/go.mod", format!("/sdk/go v{version}\n")),
        ("sdk/java/pom.xml", format!("\n  <version>{version}</version>\n")),
        ("sdk/java/core/pom.xml", format!("<artifactId>tollgate-parent</artifactId><version>{version}</version>")),
        ("sdk/typescript/package.json", format!("\n  \"version\": \"{version}\",\n")),
    ] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(&line), "{file} should have the line {line:?}");
    }
}

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

/// Those of the client; the filter and the starter have the suite.
#[test]
fn java_tests() {
    check("java", &["mvn", "-B", "-q", "-o", "-pl", "core", "test"]);
}

#[test]
fn typescript_tests() {
    // The shell lists the files: Node 18 does not.
    check("typescript", &["sh", "-c", "node --test build/test/*.test.js"]);
}
