//! Tests start only programs that a bare machine has, or that script/setup brings.

use crate::tree;

/// Of Debian's minbase, git, and what building needs anyway. A signal takes no program: `Process::signal`.
const BARE: [&str; 16] = [
    "cargo",
    "cc",
    "cp",
    "dd",
    "dpkg-deb",
    "git",
    "ipcrm",
    "ldd",
    "mkfifo",
    "mount",
    "rm",
    "sh",
    "sha256sum",
    "systemd-analyze",
    "tar",
    "umount",
];

#[test]
fn programs_that_tests_start_are_on_a_bare_machine() {
    let sources = tree::texts_ending_in(".rs").filter(|file| file.path.starts_with("crates/"));
    let mut strangers = Vec::new();
    for file in sources.filter(|file| !file.path.ends_with("tidy/programs.rs")) {
        for call in file.text.split("Command::new(\"").skip(1) {
            let program = call.split('"').next().unwrap_or_default();
            if !BARE.contains(&program) && !program.is_empty() {
                strangers.push(format!("{}: {program}", file.path));
            }
        }
    }
    assert!(
        strangers.is_empty(),
        "\n\nThese programs may be missing on a machine with only git and Rust:\n  {}\nDo without, or let script/setup \
         install the package and look the program up with tollgate_lab::program::named. script/bare tells.\n",
        strangers.join("\n  ")
    );
}
