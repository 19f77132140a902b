//! The image: a linter reads the Dockerfile, and what it copies is enough for the program to run.

use std::fs;
use std::path::Path;
use std::process::Command;

use tollgate_lab::program;

use super::{assert_setting, path, run, run_ok, text};

const BINARY: &str = env!("CARGO_BIN_EXE_tollgate");

#[test]
fn the_dockerfile_passes_hadolint() {
    let mut command = Command::new(program::named("hadolint"));
    let output = run(command.args(["--failure-threshold", "style"]).arg(path("deploy/docker/Dockerfile")));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn sets_variables_that_exist_and_runs_as_nobody_in_particular() {
    let text = text("docker/Dockerfile");
    let last = text.split("\nFROM ").last().unwrap();
    let variables: Vec<&str> =
        last.split_whitespace().filter_map(|word| word.split_once('=')).map(|(name, _)| name).collect();
    let ours: Vec<&&str> = variables.iter().filter(|name| name.starts_with("TOLLGATE_")).collect();
    assert!(ours.len() >= 5, "{ours:?}");
    ours.into_iter().filter(|name| **name != "TOLLGATE_ALLOW_ANONYMOUS").for_each(|name| assert_setting(name));
    assert!(last.starts_with("scratch") && last.contains("\nUSER 65532:65532\n") && last.contains("\nHEALTHCHECK "));
}

/// The libraries that `ldd` names are all that the program needs: it runs with the loader of the image and nothing of this
/// machine. This is the step of the Dockerfile; the rest of it takes a Docker engine.
#[test]
fn runs_with_the_libraries_that_the_image_has() {
    let libraries = run_ok(Command::new("ldd").arg(BINARY));
    let image = tempfile::tempdir().unwrap();
    let mut loader = None;
    let mut folders = Vec::new();
    for library in libraries.split_whitespace().filter(|word| word.starts_with('/')) {
        let place = image.path().join(library.trim_start_matches('/'));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(library, &place).unwrap();
        if library.contains("ld-linux") {
            loader = Some(place.clone());
        }
        folders.push(place.parent().unwrap().display().to_string());
    }
    let loader = loader.unwrap_or_else(|| panic!("ldd names no loader:\n{libraries}"));
    let mut command = Command::new(&loader);
    command.env_clear().args(["--inhibit-cache", "--library-path", &folders.join(":")]).arg(BINARY).arg("--version");
    assert!(run_ok(&mut command).starts_with("tollgate "));
    let mut command = Command::new(loader);
    command.env_clear().args(["--inhibit-cache", "--list", "--library-path", &folders.join(":")]).arg(BINARY);
    let listed = run_ok(&mut command);
    let from_image = |word: &str| Path::new(word).starts_with(image.path());
    let foreign: Vec<&str> =
        listed.split_whitespace().filter(|word| word.starts_with('/') && !from_image(word)).collect();
    assert!(foreign.iter().all(|word| word.contains("ld-linux")), "{foreign:?}");
}
