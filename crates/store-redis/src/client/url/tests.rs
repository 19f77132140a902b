//! Valid URLs, and the errors for others.

use super::*;

fn read(text: &str) -> StoreUrl {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn said(text: &str) -> String {
    text.parse::<StoreUrl>().expect_err(text).to_string()
}

#[test]
fn urls_are_read_and_printed() {
    for (text, printed) in [
        ("redis://localhost", "redis://localhost:6379"),
        ("redis://localhost/", "redis://localhost:6379"),
        ("valkey://10.0.0.1:7000/3", "redis://10.0.0.1:7000/3"),
        ("rediss://[::1]:6380", "rediss://[::1]:6380"),
        ("redis://[2001:db8::7]", "redis://[2001:db8::7]:6379"),
        ("redis://h?db=2", "redis://h:6379/2"),
        ("redis-sentinel://a,b:1/mymaster", "redis-sentinel://a:26379,b:1/mymaster"),
        ("redis-sentinels://a/m?db=1", "redis-sentinels://a:26379/m?db=1"),
        ("redis-cluster://a:1,b:2,[::1]:3", "redis-cluster://a:1,b:2,[::1]:3"),
        ("redis-clusters://a", "redis-clusters://a:6379"),
    ] {
        assert_eq!(read(text).to_string(), printed, "{text}");
        assert_eq!(read(printed), read(text), "{text}");
    }
}

#[test]
fn users_and_passwords_are_decoded_and_never_shown() {
    let url = read("redis://al%40ice:p%3Aa%2Fs%40s@host/1");
    let login = url.login.clone().unwrap();
    assert_eq!(login.user.as_deref(), Some("al@ice"));
    assert_eq!(login.password.reveal(), "p:a/s@s");
    assert_eq!(url.to_string(), "redis://al@ice:…@host:6379/1");
    assert!(!format!("{url:?} {url}").contains("p:a/s@s"));

    let login = read("redis://:sec:ret@ret@host").login.unwrap();
    assert_eq!((login.user, login.password.reveal()), (None, "sec:ret@ret"));

    let url = read("redis-sentinel://u:one@a/m?sentinel_user=s&sentinel_password=tw%26o");
    let login = url.sentinel_login.clone().unwrap();
    assert_eq!((login.user.as_deref(), login.password.reveal()), (Some("s"), "tw&o"));
    assert!(!format!("{url:?} {url}").contains("tw&o"));
}

#[test]
fn errors_name_position_cause_and_correction() {
    let told = [
        said("localhost:6379"),
        said("postgres://localhost"),
        said("redis://"),
        said("redis://host:port"),
        said("redis://host:0"),
        said("redis://ho st:1"),
        said("redis://[::1"),
        said("redis://[host]:1"),
        said("redis://[::1]6379"),
        said("redis://a,b"),
        said("redis://a/x"),
        said("redis://alice@a"),
        said("redis://alice:@a"),
        said("redis://:%4@a"),
        said("redis://a?tls=true"),
        said("redis://a?db"),
        said("redis-sentinel://a"),
        said("redis-cluster://a/1"),
        said("redis-cluster://a?db=1"),
    ]
    .join("\n");
    assert_eq!(
        told,
        "\
store URL, character 1: there is no scheme; use redis://, rediss:// (TLS), redis-sentinel(s):// or redis-cluster(s)://
store URL, character 1: \"postgres\" is not a scheme of a store; use redis://, rediss:// (TLS), redis-sentinel(s):// or redis-cluster(s)://
store URL, character 9: there is no host; write host:port, such as 127.0.0.1:6379 or [::1]:6379
store URL, character 14: the port is not a number from 1 to 65535; write host:port, such as 127.0.0.1:6379 or [::1]:6379
store URL, character 14: the port is not a number from 1 to 65535; write host:port, such as 127.0.0.1:6379 or [::1]:6379
store URL, character 11: this character is not part of a host; write host:port, such as 127.0.0.1:6379 or [::1]:6379
store URL, character 9: a [ without its ]; write host:port, such as 127.0.0.1:6379 or [::1]:6379
store URL, character 10: the text in brackets is not an IPv6 address; write host:port, such as 127.0.0.1:6379 or [::1]:6379
store URL, character 14: the port begins with a colon; write host:port, such as 127.0.0.1:6379 or [::1]:6379
store URL, character 9: a second host, b:6379, in the URL of a single server; use redis-sentinel:// or redis-cluster:// for several
store URL, character 11: the database is not a number; write the number of a database, such as /0
store URL, character 9: a user without a password; write user:password@ or :password@
store URL, character 15: the password is empty; write user:password@ or :password@
store URL, character 10: the percent-encoding is broken; write such characters as % and two hexadecimal digits, @ as %40 and / as %2F
store URL, character 11: no parameter \"tls\" here; known parameters are db, sentinel_user and sentinel_password
store URL, character 11: a parameter without a value; known parameters are db, sentinel_user and sentinel_password
store URL, character 19: Sentinels need the name of the master; write it behind the Sentinels: redis-sentinel://host:26379/mymaster
store URL, character 19: a cluster has no path and no databases; end the URL after the hosts
store URL, character 19: a cluster has no databases; leave it out"
    );
}

#[test]
fn no_error_shows_a_password() {
    for text in [
        "redis://:hun/ter2@host",
        "redis://:hun?ter2@host",
        "redis://:hun#ter2@host",
        "redis://:hunter2",
        "redis://user:hunter2",
        "redis://:hunter%2@host",
        "redis://user:hunter2@",
        "redis://user:hunter2@host:hunter2",
        "redis-sentinel://a/m?sentinel_password=hunter2%",
    ] {
        let told = said(text);
        assert!(!told.contains("hunter2") && !told.contains("hun") && !told.contains("ter2"), "{text}: {told}");
    }
}
