//! Parses URLs.
//!
//! No error quotes the text: in a malformed URL, any part of it may be a password.

use std::fmt;
use std::str::FromStr;

use super::store_url::{Layout, Login, StoreUrl};
use crate::client::address::HostPort;
use crate::client::password::Password;

/// A malformed URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError {
    /// Position of the error in characters, counted from one.
    pub at: usize,
    /// What is wrong.
    pub what: String,
    /// How to correct it.
    pub help: &'static str,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "store URL, character {}: {}; {}", self.at, self.what, self.help)
    }
}

impl std::error::Error for UrlError {}

const SCHEMES: &str = "use redis://, rediss:// (TLS), redis-sentinel(s):// or redis-cluster(s)://";
const HOSTS: &str = "write host:port, such as 127.0.0.1:6379 or [::1]:6379";
const PARAMETERS: &str = "known parameters are db, sentinel_user and sentinel_password";
const ENCODING: &str = "write such characters as % and two hexadecimal digits, @ as %40 and / as %2F";
const DATABASE: &str = "write the number of a database, such as /0";

impl FromStr for StoreUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<StoreUrl, UrlError> {
        parse(text)
    }
}

fn parse(text: &str) -> Result<StoreUrl, UrlError> {
    let whole = Piece { text, at: 0 };
    let (scheme, rest) = whole.cut("://").ok_or_else(|| whole.error("there is no scheme", SCHEMES))?;
    let (mut layout, tls) = layout(scheme)?;
    let (authority, rest) = rest.cut_at(rest.text.find(['/', '?', '#']).unwrap_or(rest.text.len()));
    if let Some(place) = rest.text.find('@') {
        return Err(rest
            .cut_at(place)
            .1
            .error("an @ after the hosts, so something before it is not encoded", ENCODING));
    }
    let (login, hosts) = match authority.text.rfind('@') {
        Some(place) => {
            let (login, hosts) = authority.cut_at(place);
            (Some(self::login(login)?), hosts.skip(1))
        }
        None => (None, authority),
    };
    let port = if matches!(layout, Layout::Sentinel { .. }) { 26_379 } else { 6379 };
    let hosts = hosts.split(',').map(|host| self::host(host, port)).collect::<Result<Vec<_>, _>>()?;
    if let (Layout::Single, [_, second, ..]) = (&layout, hosts.as_slice()) {
        let what = format!("a second host, {second}, in the URL of a single server");
        return Err(authority.error(what, "use redis-sentinel:// or redis-cluster:// for several"));
    }
    if let Some(place) = rest.text.find('#') {
        return Err(rest.cut_at(place).1.error("a # does not belong here", ENCODING));
    }
    let (path, query) = rest.cut_at(rest.text.find('?').unwrap_or(rest.text.len()));
    let mut db = self::path(path, &mut layout)?;
    let parameters = parameters(query.skip(1), &layout)?;
    if let Some(number) = parameters.db {
        db = number;
    }
    Ok(StoreUrl { layout, tls, login, sentinel_login: parameters.sentinel_login(), hosts, db })
}

/// A part of the URL and its position.
#[derive(Clone, Copy)]
struct Piece<'a> {
    text: &'a str,
    /// Position in characters.
    at: usize,
}

impl<'a> Piece<'a> {
    fn cut_at(self, place: usize) -> (Piece<'a>, Piece<'a>) {
        let (before, after) = self.text.split_at_checked(place).unwrap_or((self.text, ""));
        (Piece { text: before, ..self }, Piece { text: after, at: self.at + before.chars().count() })
    }

    fn skip(self, bytes: usize) -> Piece<'a> {
        self.cut_at(bytes.min(self.text.len())).1
    }

    fn cut(self, separator: &str) -> Option<(Piece<'a>, Piece<'a>)> {
        let (before, after) = self.cut_at(self.text.find(separator)?);
        Some((before, after.skip(separator.len())))
    }

    fn split(self, separator: char) -> impl Iterator<Item = Piece<'a>> {
        let mut rest = Some(self);
        std::iter::from_fn(move || {
            let present = rest?;
            let (first, after) = present.cut_at(present.text.find(separator).unwrap_or(present.text.len()));
            rest = if after.text.is_empty() { None } else { Some(after.skip(separator.len_utf8())) };
            Some(first)
        })
    }

    fn error(self, what: impl Into<String>, help: &'static str) -> UrlError {
        UrlError { at: self.at + 1, what: what.into(), help }
    }
}

fn layout(scheme: Piece<'_>) -> Result<(Layout, bool), UrlError> {
    let name = scheme.text.strip_prefix("valkey").or(scheme.text.strip_prefix("redis"));
    let sentinel = || Layout::Sentinel { master: String::new() };
    match name {
        Some("") => Ok((Layout::Single, false)),
        Some("s") => Ok((Layout::Single, true)),
        Some("-sentinel") => Ok((sentinel(), false)),
        Some("-sentinels") => Ok((sentinel(), true)),
        Some("-cluster") => Ok((Layout::Cluster, false)),
        Some("-clusters") => Ok((Layout::Cluster, true)),
        _ => Err(scheme.error(format!("{:?} is not a scheme of a store", scheme.text), SCHEMES)),
    }
}

fn login(piece: Piece<'_>) -> Result<Login, UrlError> {
    let Some((user, password)) = piece.cut(":") else {
        return Err(piece.error("a user without a password", "write user:password@ or :password@"));
    };
    if password.text.is_empty() {
        return Err(password.error("the password is empty", "write user:password@ or :password@"));
    }
    let user = Some(decoded(user)?).filter(|user| !user.is_empty());
    Ok(Login { user, password: Password::new(decoded(password)?) })
}

fn host(piece: Piece<'_>, default_port: u16) -> Result<HostPort, UrlError> {
    let (host, port) = match piece.text.strip_prefix('[') {
        Some(inside) => {
            let end = inside.find(']').ok_or_else(|| piece.error("a [ without its ]", HOSTS))?;
            let (host, rest) = piece.skip(1).cut_at(end);
            if host.text.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(host.error("the text in brackets is not an IPv6 address", HOSTS));
            }
            (host, rest.skip(1))
        }
        None => piece.cut_at(piece.text.find(':').unwrap_or(piece.text.len())),
    };
    if host.text.is_empty() {
        return Err(host.error("there is no host", HOSTS));
    }
    let odd = |letter: char| !(letter.is_alphanumeric() || ".-_:".contains(letter));
    if let Some(place) = host.text.find(odd) {
        return Err(host.cut_at(place).1.error("this character is not part of a host", HOSTS));
    }
    let port = match port.text.strip_prefix(':') {
        None if port.text.is_empty() => default_port,
        None => return Err(port.error("the port begins with a colon", HOSTS)),
        Some(number) => number
            .parse()
            .ok()
            .filter(|port| *port != 0)
            .ok_or_else(|| port.skip(1).error("the port is not a number from 1 to 65535", HOSTS))?,
    };
    Ok(HostPort::new(host.text, port))
}

/// The path: the name of the primary for Sentinels, else the database number.
fn path(path: Piece<'_>, layout: &mut Layout) -> Result<u32, UrlError> {
    let inside = path.skip(1);
    match layout {
        Layout::Sentinel { master } => {
            *master = decoded(inside)?;
            if master.is_empty() || master.contains('/') {
                let help = "write it behind the Sentinels: redis-sentinel://host:26379/mymaster";
                return Err(inside.error("Sentinels need the name of the master", help));
            }
            Ok(0)
        }
        _ if inside.text.is_empty() => Ok(0),
        Layout::Single => number(inside),
        Layout::Cluster => Err(inside.error("a cluster has no path and no databases", "end the URL after the hosts")),
    }
}

#[derive(Default)]
struct Parameters {
    db: Option<u32>,
    sentinel_user: Option<String>,
    sentinel_password: Option<String>,
}

impl Parameters {
    fn sentinel_login(self) -> Option<Login> {
        let password = Password::new(self.sentinel_password?);
        Some(Login { user: self.sentinel_user, password })
    }
}

fn parameters(query: Piece<'_>, layout: &Layout) -> Result<Parameters, UrlError> {
    let mut found = Parameters::default();
    let sentinel = matches!(layout, Layout::Sentinel { .. });
    for piece in query.split('&').filter(|piece| !piece.text.is_empty()) {
        let (name, value) = piece.cut("=").ok_or_else(|| piece.error("a parameter without a value", PARAMETERS))?;
        match name.text {
            "db" if *layout == Layout::Cluster => return Err(piece.error("a cluster has no databases", "leave it out")),
            "db" => found.db = Some(number(value)?),
            "sentinel_user" if sentinel => found.sentinel_user = Some(decoded(value)?),
            "sentinel_password" if sentinel => found.sentinel_password = Some(decoded(value)?),
            _ => return Err(piece.error(format!("no parameter {:?} here", name.text), PARAMETERS)),
        }
    }
    Ok(found)
}

fn number(piece: Piece<'_>) -> Result<u32, UrlError> {
    piece.text.parse().map_err(|_| piece.error("the database is not a number", DATABASE))
}

fn decoded(piece: Piece<'_>) -> Result<String, UrlError> {
    let broken = || piece.error("the percent-encoding is broken", ENCODING);
    let mut bytes = Vec::with_capacity(piece.text.len());
    let mut rest = piece.text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                let digit = |byte: u8| char::from(byte).to_digit(16).ok_or_else(broken);
                bytes.push((digit(*high)? * 16 + digit(*low)?) as u8);
                rest = after;
            }
            (b'%', _) => return Err(broken()),
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| broken())
}
