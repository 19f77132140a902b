//! A store that refuses commands.

use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use crate::faults::{BackgroundLoad, Lab, RowResult};
use crate::patience;
use crate::process::Process;
use crate::redis::{RedisClient, RedisServer};

fn begin(lab: &mut Lab, url: &str) -> BackgroundLoad {
    lab.fleet(url, 2);
    let load = lab.load(8);
    lab.pause(700);
    load
}

/// Makes the server refuse commands, waits while nodes decide without it, undoes it and waits until it decides again.
fn refused_for_a_while(mut lab: Lab, server: &RedisServer, does: &[&str], undoes: &[&str]) -> RowResult {
    let load = begin(&mut lab, &server.url());
    let mut client = server.client();
    let from = lab.now();
    client.succeed(does);
    lab.pause(1500);
    let to = lab.now();
    lab.expect_errors();
    client.succeed(undoes);
    lab.expect_return();
    lab.pause(500);
    lab.stop(load);
    lab.expect_outage(from, to);
    lab.expect_alive();
    lab.expect_ttls(&[server.port()]);
    lab.conclude()
}

/// F23.
pub fn out_of_memory(lab: Lab) -> RowResult {
    let server = RedisServer::start();
    let set = ["CONFIG", "SET", "maxmemory"];
    refused_for_a_while(lab, &server, &[&set[..], &["1"]].concat(), &[&set[..], &["0"]].concat())
}

/// F26.
pub fn no_replicas(lab: Lab) -> RowResult {
    let server = RedisServer::start();
    let set = ["CONFIG", "SET", "min-replicas-to-write"];
    refused_for_a_while(lab, &server, &[&set[..], &["1"]].concat(), &[&set[..], &["0"]].concat())
}

/// F24. Nothing is broken yet, so the check is at the start.
pub fn evicting(mut lab: Lab) -> RowResult {
    let server = RedisServer::start_with(&["--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"]);
    let rules = lab.directory().join("rules.yaml");
    let errors = lab.directory().join("refused.log");
    let mut node = Process::start(&lab.tollgate, |command| {
        command.args(["serve", "--http", "127.0.0.1:0", "--admin", "off", "--require-noeviction", "--store"]);
        command.arg(server.url()).args(["--db", "off"]).arg("--rules").arg(&rules).stdout(Stdio::null());
        command.stderr(std::fs::File::create(&errors).expect("a file for the log"));
    })
    .expect("the binary runs");
    let status = node.wait(Duration::from_secs(10));
    let log = std::fs::read_to_string(&errors).unwrap_or_default();
    lab.expect(status.is_some_and(|status| !status.success()), || format!("it starts anyway: {log}"));
    lab.expect(log.contains("noeviction"), || format!("it does not log why: {log}"));
    lab.fleet(&server.url(), 2);
    let log = lab.nodes[0].server_log();
    lab.expect(log.contains("noeviction"), || format!("no warning: {log}"));
    let load = lab.load(8);
    lab.pause(1000);
    lab.stop(load);
    lab.expect_alive();
    lab.expect_ttls(&[server.port()]);
    lab.conclude()
}

/// F27. A node never kills the script of another client, so it still runs at the end.
pub fn busy(mut lab: Lab) -> RowResult {
    let server = RedisServer::start_with(&["--busy-reply-threshold", "100"]);
    let load = begin(&mut lab, &server.url());
    let (mut culprit, mut client) = (server.client(), server.client());
    let from = lab.now();
    culprit.send(&["EVAL", "while true do end", "0"]);
    lab.pause(2000);
    let (to, killed) = (lab.now(), client.call(&["SCRIPT", "KILL"]));
    lab.expect(killed.error_word().is_none(), || format!("a node has killed the script: {killed:?}"));
    lab.expect_return();
    lab.pause(500);
    lab.stop(load);
    lab.expect_outage(from, to);
    lab.expect_alive();
    lab.expect_ttls(&[server.port()]);
    lab.conclude()
}

/// F29.
pub fn password_changed(mut lab: Lab) -> RowResult {
    const FIRST: &str = "first-password-6021";
    let server = RedisServer::start_with(&["--requirepass", ""]);
    let mut client = server.client();
    client.succeed(&["CONFIG", "SET", "requirepass", FIRST]);
    let load = begin(&mut lab, &format!("redis://:{FIRST}@127.0.0.1:{}", server.port()));
    let from = lab.now();
    client.succeed(&["CONFIG", "SET", "requirepass", "another"]);
    client.succeed(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    lab.pause(1500);
    let to = lab.now();
    lab.expect_errors();
    client.succeed(&["CONFIG", "SET", "requirepass", FIRST]);
    lab.expect_return();
    lab.pause(500);
    lab.stop(load);
    let log: String = lab.nodes.iter().map(|node| node.server_log()).collect();
    lab.expect(!log.contains(FIRST), || "P30: the password is in the log".to_owned());
    lab.expect_outage(from, to);
    lab.expect_alive();
    client.succeed(&["CONFIG", "SET", "requirepass", ""]);
    lab.expect_ttls(&[server.port()]);
    lab.conclude()
}

/// F30.
pub fn too_many_clients(mut lab: Lab) -> RowResult {
    const CLIENTS: usize = 40;
    let server = RedisServer::start_with(&["--maxclients", &CLIENTS.to_string()]);
    let load = begin(&mut lab, &server.url());
    let mut client = server.client();
    let from = lab.now();
    let crowd = crowd_out(&server, &mut client, CLIENTS);
    let (full, before) = (lab.now(), client.figure("stats", "rejected_connections"));
    lab.pause(2000);
    let (to, attempts) = (lab.now(), client.figure("stats", "rejected_connections") - before);
    let most = 20 * 2 * lab.nodes.len() as u64;
    lab.expect(attempts <= most, || format!("{attempts} attempts to connect in 2 s, at most {most}"));
    lab.remark(format!("{attempts} attempts to connect in 2 s"));
    drop(crowd);
    lab.expect_return();
    lab.pause(500);
    lab.stop(load);
    lab.expect_outage(full, to);
    lab.expect_timely(from, to);
    lab.expect_alive();
    lab.expect_ttls(&[server.port()]);
    lab.conclude()
}

/// Takes every connection of a server: kills the connections of all other clients until none of them is back first.
fn crowd_out(server: &RedisServer, client: &mut RedisClient, places: usize) -> Vec<TcpStream> {
    let mut crowd: Vec<TcpStream> = Vec::new();
    patience::until("the crowd takes every place", Duration::from_secs(10), || {
        let ours: Vec<String> = crowd.iter().filter_map(|stream| Some(stream.local_addr().ok()?.to_string())).collect();
        let list = client.text(&["CLIENT", "LIST"]);
        let me = client.number(&["CLIENT", "ID"]).to_string();
        let field = |line: &str, name: &str| -> Option<String> {
            line.split(' ').find_map(|part| part.strip_prefix(name)).map(str::to_owned)
        };
        let addresses = list.lines().filter(|line| field(line, "id=").is_some_and(|id| id != me));
        let addresses: Vec<String> = addresses.filter_map(|line| field(line, "addr=")).collect();
        crowd.retain(|stream| stream.local_addr().is_ok_and(|at| addresses.contains(&at.to_string())));
        let strangers: Vec<&String> = addresses.iter().filter(|address| !ours.contains(address)).collect();
        for stranger in &strangers {
            let _ = client.call(&["CLIENT", "KILL", "ADDR", stranger]);
            crowd.extend(TcpStream::connect(("127.0.0.1", server.port())));
        }
        while crowd.len() + 1 < places {
            crowd.extend(TcpStream::connect(("127.0.0.1", server.port())));
        }
        strangers.is_empty() && addresses.len() + 1 >= places
    });
    crowd
}
