//! Introspection commands that Redis clients send on connect.

use std::fmt::Write as _;
use std::net::IpAddr;

use tollgate_core::Time;
use tollgate_resp::{Arguments, ReplyWriter, excerpt, wrong_number_of_arguments};

use super::Resp;
use super::command::{CommandSpec, RespCommand};

/// Emulated Redis version. Clients choose their commands by it.
const REDIS_VERSION: &str = "7.2.0";

/// Longest connection name.
const NAME_BYTES_MAX: usize = 256;

/// What `CLIENT` tells of a connection.
#[derive(Debug)]
pub(super) struct ClientInfo {
    pub(super) id: u64,
    /// `None` for a Unix domain socket.
    pub(super) address: Option<IpAddr>,
    /// Name from `CLIENT SETNAME`.
    pub(super) name: Vec<u8>,
}

/// A connection name that is too long, or contains other than visible ASCII.
pub(super) struct InvalidClientName;

impl ClientInfo {
    /// Checks a connection name.
    pub(super) fn check_name(name: &[u8]) -> Result<&[u8], InvalidClientName> {
        let is_valid = name.len() <= NAME_BYTES_MAX && name.iter().all(u8::is_ascii_graphic);
        if is_valid { Ok(name) } else { Err(InvalidClientName) }
    }

    /// The connection in the format of `CLIENT LIST`. A connection sees only itself.
    fn line(&self, version: u64) -> Vec<u8> {
        let address = self.address.map_or("unix".to_owned(), |address| address.to_string());
        let mut text = format!("id={} addr={address}:0 name=", self.id).into_bytes();
        text.extend_from_slice(&self.name);
        text.extend_from_slice(format!(" db=0 resp={version}\n").as_bytes());
        text
    }
}

impl InvalidClientName {
    /// Writes the error reply.
    pub(super) fn write(self, out: &mut ReplyWriter<'_>) {
        out.error(&[
            b"ERR Client names cannot contain spaces, newlines or special characters, nor more than 256 bytes.",
        ]);
    }
}

/// Reply to `HELLO`.
pub(super) fn hello(id: u64, out: &mut ReplyWriter<'_>) {
    let version = out.version().number();
    out.map(7);
    out.bulk(b"server");
    out.bulk(b"tollgate");
    out.bulk(b"version");
    out.bulk(env!("CARGO_PKG_VERSION").as_bytes());
    out.bulk(b"proto");
    out.unsigned(version);
    out.bulk(b"id");
    out.unsigned(id);
    out.bulk(b"mode");
    out.bulk(b"standalone");
    out.bulk(b"role");
    out.bulk(b"master");
    out.bulk(b"modules");
    out.array(0);
}

/// `CLIENT …`. Optional features that clients probe for, such as maintenance notifications, are unknown subcommands,
/// which the clients accept.
pub(super) fn client(info: &mut ClientInfo, arguments: Arguments<'_>, out: &mut ReplyWriter<'_>) {
    let sent = arguments.get(1).unwrap_or_default();
    let is = |name: &str, elements: usize| sent.eq_ignore_ascii_case(name.as_bytes()) && arguments.len() == elements;
    match () {
        () if is("setname", 3) => match ClientInfo::check_name(arguments.get(2).unwrap_or_default()) {
            Ok(name) => {
                info.name = name.to_vec();
                out.simple("OK");
            }
            Err(error) => error.write(out),
        },
        () if is("getname", 2) && info.name.is_empty() => out.null(),
        () if is("getname", 2) => out.bulk(&info.name),
        () if is("id", 2) => out.unsigned(info.id),
        () if is("info", 2) || sent.eq_ignore_ascii_case(b"list") => out.bulk(&info.line(out.version().number())),
        () if is("setinfo", 4) => match arguments.get(2) {
            Some(name) if name.eq_ignore_ascii_case(b"lib-name") || name.eq_ignore_ascii_case(b"lib-ver") => {
                out.simple("OK");
            }
            other => out.error(&[b"ERR Unrecognized option '", excerpt(other.unwrap_or_default()), b"'"]),
        },
        () if is("no-evict", 3) || is("no-touch", 3) => out.simple("OK"),
        () => unknown_subcommand(b"CLIENT", sent, &SUBCOMMANDS, out),
    }
}

/// Subcommands of `CLIENT`, to distinguish a wrong argument count from an unknown name.
const SUBCOMMANDS: [&str; 7] = ["setname", "getname", "id", "info", "setinfo", "no-evict", "no-touch"];

/// `COMMAND …`.
pub(super) fn command(arguments: Arguments<'_>, out: &mut ReplyWriter<'_>) {
    let Some(sent) = arguments.get(1) else {
        out.array(RespCommand::ALL.len());
        return RespCommand::ALL.iter().for_each(|spec| write_command_spec(spec, out));
    };
    match () {
        () if sent.eq_ignore_ascii_case(b"count") => out.unsigned(RespCommand::ALL.len() as u64),
        () if sent.eq_ignore_ascii_case(b"docs") => out.map(0),
        () if sent.eq_ignore_ascii_case(b"list") => {
            out.array(RespCommand::ALL.len());
            RespCommand::ALL.iter().for_each(|spec| out.bulk(spec.name.as_bytes()));
        }
        () if sent.eq_ignore_ascii_case(b"info") && arguments.len() == 2 => {
            out.array(RespCommand::ALL.len());
            RespCommand::ALL.iter().for_each(|spec| write_command_spec(spec, out));
        }
        () if sent.eq_ignore_ascii_case(b"info") => {
            out.array(arguments.len() - 2);
            for name in arguments.from(2) {
                match RespCommand::find(name) {
                    Some(spec) => write_command_spec(spec, out),
                    None => out.null_array(),
                }
            }
        }
        () => unknown_subcommand(b"COMMAND", sent, &[], out),
    }
}

/// One command in the format of `COMMAND INFO`: name, arity, flags, keys. Categories, tips and the rest are empty.
fn write_command_spec(spec: &CommandSpec, out: &mut ReplyWriter<'_>) {
    out.array(10);
    out.bulk(spec.name.as_bytes());
    out.integer(i64::from(spec.arity));
    out.set(2);
    out.simple(if spec.writes { "write" } else { "readonly" });
    out.simple("fast");
    spec.keys.iter().for_each(|position| out.integer(i64::from(*position)));
    out.set(0);
    out.array(0);
    out.array(0);
    out.array(0);
}

/// `INFO`: always all sections.
pub(super) fn info(resp: &Resp, out: &mut ReplyWriter<'_>) {
    let service = &resp.service;
    let uptime = service.clock.now().since(resp.started).nanos() / 1_000_000_000;
    let mut text = String::new();
    let _ = write!(
        text,
        "# Server\r\nserver_name:tollgate\r\ntollgate_version:{}\r\nredis_version:{REDIS_VERSION}\r\n\
         redis_mode:standalone\r\nuptime_in_seconds:{uptime}\r\n\r\n# Persistence\r\nloading:0\r\n\r\n\
         # Replication\r\nrole:master\r\n\r\n# Rules\r\ngeneration:{}\r\nmode:{}\r\n",
        env!("CARGO_PKG_VERSION"),
        service.generation(),
        service.enforcement().name(),
    ); // writing to a String cannot fail
    out.bulk(text.as_bytes());
}

/// `CONFIG GET`: always empty. Configuration is not exposed over RESP.
pub(super) fn config(arguments: Arguments<'_>, out: &mut ReplyWriter<'_>) {
    let sent = arguments.get(1).unwrap_or_default();
    match sent.eq_ignore_ascii_case(b"get") && arguments.len() > 2 {
        true => out.map(0),
        false => unknown_subcommand(b"CONFIG", sent, &["get"], out),
    }
}

/// `SELECT`: every index is the same database, unless only index 0 is accepted.
pub(super) fn select(one_database: bool, arguments: Arguments<'_>, out: &mut ReplyWriter<'_>) {
    let number = arguments.get(1).and_then(|sent| str::from_utf8(sent).ok()).and_then(|sent| sent.parse().ok());
    match number {
        Some(0_u32) => out.simple("OK"),
        Some(_) if one_database => out.error(&[b"ERR DB index is out of range"]),
        Some(_) => out.simple("OK"),
        None => out.error(&[b"ERR value is not an integer or out of range"]),
    }
}

/// `TIME`: seconds and microseconds.
pub(super) fn time(now: Time, out: &mut ReplyWriter<'_>) {
    let micros = now.nanos() / 1000;
    out.array(2);
    out.bulk(itoa::Buffer::new().format(micros / 1_000_000).as_bytes());
    out.bulk(itoa::Buffer::new().format(micros % 1_000_000).as_bytes());
}

/// Error for an unknown subcommand, or a known one with a wrong number of arguments.
fn unknown_subcommand(command: &[u8], sent: &[u8], known: &[&str], out: &mut ReplyWriter<'_>) {
    match known.iter().find(|name| sent.eq_ignore_ascii_case(name.as_bytes())) {
        Some(name) => {
            wrong_number_of_arguments(&[command.to_ascii_lowercase().as_slice(), b"|", name.as_bytes()].concat(), out)
        }
        None => out.error(&[b"ERR unknown subcommand '", excerpt(sent), b"'. Try ", command, b" HELP."]),
    }
}
