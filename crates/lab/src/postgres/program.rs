//! Finds PostgreSQL's programs, and runs them as another user than root, which they refuse.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs, io};

use crate::process;

/// Where Debian installs the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// The path of a program. Panics if PostgreSQL is missing: a test cannot run without its server.
pub(super) fn named(program: &str) -> PathBuf {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| place().expect("postgres is not here: script/setup installs PostgreSQL")).join(program)
}

/// The directory of `postgres` on the PATH, or else of Debian's newest version.
fn place() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).filter_map(|place| {
        let program = place.join("postgres").canonicalize().ok()?; // follow a link to the directory of all programs
        Some(program.parent()?.to_owned())
    });
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir(VERSIONS)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            Some((path.file_name()?.to_str()?.parse().ok()?, path.join("bin")))
        })
        .collect();
    versions.sort();
    let is_whole = |place: &PathBuf| ["postgres", "initdb", "psql"].iter().all(|name| place.join(name).is_file());
    on_path.chain(versions.into_iter().rev().map(|(_, place)| place)).find(is_whole)
}

/// Makes a command run without root privileges.
pub(super) fn unprivileged(command: &mut Command) -> &mut Command {
    match user() {
        Some((user, group)) => command.uid(user).gid(group),
        None => command,
    }
}

/// Runs a command to its end, without root privileges. Panics with its output if it fails.
pub(super) fn run(program: &Path, arguments: &[&OsStr]) {
    let mut command = Command::new(program);
    let output = unprivileged(&mut command).args(arguments).current_dir("/").output();
    let output = output.unwrap_or_else(|error| panic!("{} does not start: {error}", program.display()));
    assert!(output.status.success(), "{}: {}", program.display(), String::from_utf8_lossy(&output.stderr));
}

/// Gives a directory to the user that runs the server.
pub(super) fn hand_over(directory: &Path) -> io::Result<()> {
    let Some((user, group)) = user() else { return Ok(()) };
    fs::set_permissions(process::root(), fs::Permissions::from_mode(0o711))?;
    std::os::unix::fs::chown(directory, Some(user), Some(group))
}

/// The user and group to use instead of root: `postgres`, or else the unprivileged user of the system.
fn user() -> Option<(u32, u32)> {
    static USER: OnceLock<Option<(u32, u32)>> = OnceLock::new();
    *USER.get_or_init(|| {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let of = |name: &str| {
            let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
            let mut fields = line.split(':').skip(2);
            Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
        };
        Some(of("postgres").or_else(|| of("nobody")).expect("a user who is not root, to run PostgreSQL"))
    })
}
