//! How the `conformance` program of each language is built and started.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

/// A client library.
pub struct Language {
    name: &'static str,
    /// Below `sdk`.
    directory: &'static str,
    /// What script/setup fetches, below the library or else below `target/test-tools`: without it nothing can be built.
    needs: &'static str,
    /// Another row whose program this is, on another runtime.
    built_as: Option<&'static str>,
    /// Commands that build, without a network.
    build: &'static [&'static [&'static str]],
    /// The command before `app FRAMEWORK` or `client`.
    program: &'static [&'static str],
}

static LANGUAGES: &[Language] = &[
    Language {
        name: "bun",
        directory: "typescript",
        needs: "bin/bun",
        built_as: Some("typescript"),
        build: &[],
        program: &["bun", "build/conformance/main.js"],
    },
    Language {
        name: "deno",
        directory: "typescript",
        needs: "bin/deno",
        built_as: Some("typescript"),
        build: &[],
        program: &["deno", "run", "--allow-all", "build/conformance/main.js"],
    },
    Language {
        name: "go",
        directory: "go",
        needs: "go-modules.sum",
        built_as: None,
        build: &[&["go", "build", "-C", "conformance", "-o", "../build/conformance", "."]],
        program: &["build/conformance"],
    },
    Language {
        name: "java",
        directory: "java",
        needs: "java-poms.xml",
        built_as: None,
        build: &[&["mvn", "-B", "-q", "-o", "-DskipTests", "package"]],
        program: &[
            "java",
            "-XX:TieredStopAtLevel=1", // programs that live for a second or two
            "-cp",
            "conformance/target/classes:conformance/target/lib/*",
            "dev.tollgate.conformance.Main",
        ],
    },
    Language {
        name: "python",
        directory: "python",
        needs: "sdk-python.txt",
        built_as: None,
        build: &[],
        program: &["python", "-m", "conformance"],
    },
    // The client has a twin for asyncio.
    Language {
        name: "python_asyncio",
        directory: "python",
        needs: "sdk-python.txt",
        built_as: None,
        build: &[],
        program: &["python", "-m", "conformance", "asyncio"],
    },
    // `cargo test --workspace` builds examples.
    Language {
        name: "rust",
        directory: "rust",
        needs: "README.md",
        built_as: None,
        build: &[],
        program: &["{examples}/conformance"],
    },
    Language {
        name: "typescript",
        directory: "typescript",
        needs: "node_modules/.bin/tsc",
        built_as: None,
        build: &[
            &["node", "node_modules/.bin/tsc", "-p", "tsconfig.build.json"],
            &["node", "node_modules/.bin/tsc", "-p", "tsconfig.json"],
        ],
        program: &["node", "build/conformance/main.js"],
    },
];

/// The command that starts a language's program; builds it first, once.
pub fn program(name: &str) -> Command {
    static BUILT: OnceLock<Mutex<BTreeMap<&str, bool>>> = OnceLock::new();
    let language = find(name);
    is_installed(language);
    let source = language.built_as.map_or(language, find);
    let mut built = BUILT.get_or_init(Mutex::default).lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !built.contains_key(source.name) {
        built.insert(source.name, false);
        is_installed(source);
        source.build.iter().for_each(|step| succeed(source, step));
        built.insert(source.name, true);
    }
    assert!(built[source.name], "the program of {name} was not built: another test says why");
    command_of(language, language.program)
}

fn find(name: &str) -> &'static Language {
    let language = LANGUAGES.iter().find(|language| language.name == name);
    language.unwrap_or_else(|| panic!("{name} has no row in languages.rs"))
}

fn is_installed(language: &Language) {
    let places = [language.directory(), tools()];
    if !places.iter().any(|place| place.join(language.needs).exists()) {
        panic!("sdk/{}: {} is not here; run script/setup", language.directory, language.needs);
    }
}

/// Runs one of a library's own checks.
pub fn check(name: &str, words: &[&str]) {
    program(name);
    succeed(find(name), words);
}

fn succeed(language: &Language, words: &[&str]) {
    let output = command_of(language, words).env("TOLLGATE_BIN", env!("CARGO_BIN_EXE_tollgate")).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}; run script/setup", words[0]));
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "sdk/{}: {}\n{}", language.name, words.join(" "), String::from_utf8_lossy(&said));
}

/// A command in a library's directory.
pub fn command(name: &str, words: &[&str]) -> Command {
    command_of(find(name), words)
}

/// A command in the library's directory, with the programs of script/setup before those of the system.
fn command_of(language: &Language, words: &[&str]) -> Command {
    let inherited = env::var_os("PATH").unwrap_or_default();
    let paths = [tools().join("bin")].into_iter().chain(env::split_paths(&inherited));
    let path = env::join_paths(paths).unwrap();
    let program = match words[0].strip_prefix("{examples}/") {
        Some(name) => example(name),
        None => {
            let program = env::split_paths(&path).map(|place| place.join(words[0])).find(|program| program.is_file());
            program.unwrap_or_else(|| PathBuf::from(words[0]))
        }
    };
    let mut command = Command::new(program);
    command.args(&words[1..]).current_dir(language.directory()).env("PATH", path);
    command
}

/// An example of this workspace, beside the tests of this build.
fn example(name: &str) -> PathBuf {
    let tests = env::current_exe().unwrap();
    let example = tests.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(example.is_file(), "{} is not built: cargo build --workspace --example {name}", example.display());
    example
}

fn tools() -> PathBuf {
    root().join("target/test-tools")
}

impl Language {
    fn directory(&self) -> PathBuf {
        root().join("sdk").join(self.directory)
    }
}

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
