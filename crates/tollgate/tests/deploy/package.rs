//! The archive and the Debian package that `script/dist` makes, from the program of this build.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{path, run_ok};

const BINARY: &str = env!("CARGO_BIN_EXE_tollgate");

/// Packs the repository as it is, in a copy: `target/packages` of a person who runs the tests stays theirs.
fn pack(folder: &Path) {
    let top = path("");
    run_ok(Command::new("git").args(["clone", "-q", "--no-hardlinks"]).arg(&top).arg(folder));
    // What is not committed yet is packed as well.
    for part in ["script", "deploy", "examples", "Cargo.toml", "Cargo.lock", "crates"] {
        run_ok(Command::new("rm").arg("-r").arg(folder.join(part)));
        run_ok(Command::new("cp").args(["-r", "--no-target-directory"]).arg(top.join(part)).arg(folder.join(part)));
    }
    let sbom = Path::new(BINARY).with_file_name("sbom");
    assert!(sbom.is_file(), "{} is missing: cargo build -p tollgate-lab", sbom.display());
    let mut command = Command::new(folder.join("script/dist"));
    run_ok(command.args(["--tollgate", BINARY, "--sbom"]).arg(sbom));
}

#[test]
fn the_packages_have_what_they_need_and_the_same_files_give_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    [&one, &two].into_iter().for_each(|folder| pack(folder));
    let sums = |folder: &Path| std::fs::read_to_string(folder.join("target/packages/SHA256SUMS")).unwrap();
    assert_eq!(sums(&one), sums(&two));
    let dist = one.join("target/packages");
    run_ok(Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(&dist));

    let version = env!("CARGO_PKG_VERSION");
    let deb = dist.join(format!("tollgate_{version}_amd64.deb"));
    let root = folder.path().join("root");
    run_ok(Command::new("dpkg-deb").arg("-x").arg(&deb).arg(&root));
    let printed = run_ok(Command::new(root.join("usr/bin/tollgate")).arg("--version"));
    assert_eq!(printed.trim(), format!("tollgate {version}"));
    for file in [
        "lib/systemd/system/tollgate.service",
        "lib/systemd/system/tollgate-gateway.service",
        "usr/share/man/man1/tollgate.1.gz",
        "usr/share/man/man1/tollgate-serve.1.gz",
        "usr/share/bash-completion/completions/tollgate",
        "usr/share/doc/tollgate/copyright",
        "usr/share/doc/tollgate/sbom.cdx.json",
    ] {
        assert!(root.join(file).is_file(), "{file} is not in the package");
    }
    let unit = std::fs::read_to_string(root.join("lib/systemd/system/tollgate.service")).unwrap();
    assert!(unit.contains("ExecStart=/usr/bin/tollgate serve") && !unit.contains("/usr/local"));
    // The configuration that is installed starts.
    let mut command = Command::new(root.join("usr/bin/tollgate"));
    run_ok(command.args(["config", "--config"]).arg(root.join("etc/tollgate/tollgate.yaml")));
    let mut command = Command::new(root.join("usr/bin/tollgate"));
    run_ok(command.args(["rules", "lint"]).arg(root.join("etc/tollgate/rules.yaml")));
    let fields = run_ok(Command::new("dpkg-deb").args(["-f"]).arg(&deb));
    assert!(fields.contains(&format!("Version: {version}\n")) && !fields.contains('@'.to_string().repeat(2).as_str()));
    assert!(fields.contains("Depends: libc6 (>= 2."), "{fields}");

    let archive = dist.join(format!("tollgate-{version}-x86_64-linux-gnu.tar.gz"));
    let listed = run_ok(Command::new("tar").arg("-tzf").arg(&archive));
    for file in ["tollgate", "LICENSE", "man/tollgate.1", "completions/_tollgate", "systemd/tollgate.service"] {
        assert!(listed.lines().any(|line| line.ends_with(&format!("linux-gnu/{file}"))), "{file}: {listed}");
    }
    bill_names_what_is_compiled_in(&root.join("usr/share/doc/tollgate/sbom.cdx.json"));
}

fn bill_names_what_is_compiled_in(file: &Path) {
    let bill: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&Value::from("CycloneDX"), &Value::from("1.6")));
    let components = bill["components"].as_array().unwrap();
    let named = |name: &str| components.iter().find(|component| component["name"] == name);
    let tokio = named("tokio").unwrap();
    assert_eq!(tokio["hashes"][0]["content"].as_str().unwrap().len(), 64);
    assert_eq!(tokio["licenses"][0]["expression"], "MIT");
    assert!(named("tollgate-core").is_some() && named("proptest").is_none(), "what only tests use is not shipped");
    assert!(
        components.iter().all(|component| component["licenses"][0]["expression"] != ""),
        "a crate without a licence"
    );
}
