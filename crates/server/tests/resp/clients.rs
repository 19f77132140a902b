//! Real clients with their default settings. What is missing is named, and script/setup installs it.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use tollgate_lab::program;

use crate::rig::Rig;

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/resp/clients");
const NODE_PACKAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-tools/node/node_modules");

/// Runs a program to its end, apart from the threads that serve it; answers what it printed.
async fn run(name: &str, arguments: Vec<String>, input: &'static str) -> String {
    let program = program::named(name);
    let work = move || {
        let mut child = Command::new(program)
            .args(&arguments)
            .env("NODE_PATH", NODE_PACKAGES)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{arguments:?}: {out}{err}(script/setup installs what is missing)");
        out.into_owned()
    };
    tokio::task::spawn_blocking(work).await.unwrap()
}

fn redis_cli(at: SocketAddr, words: &str) -> Vec<String> {
    let port = at.port().to_string();
    ["-p", &port].into_iter().chain(words.split_whitespace()).map(str::to_owned).collect()
}

#[tokio::test]
async fn redis_cli_one_command() {
    let rig = Rig::start();
    let out = run("redis-cli", redis_cli(rig.at(), "CL.THROTTLE user 15 30 60"), "").await;
    assert_eq!(out, "0\n16\n15\n-1\n2\n");
    let out = run("redis-cli", redis_cli(rig.at(), "-3 --json TG.PEEK client_key=a"), "").await;
    assert!(out.contains("\"allowed\":true") && out.contains("\"limit\":10"), "{out}");
    let out = run("redis-cli", redis_cli(rig.at(), "-3 PING"), "").await;
    assert_eq!(out, "PONG\n");
}

#[tokio::test]
async fn redis_cli_by_a_pipe() {
    let rig = Rig::start();
    let input = "PING\nCL.THROTTLE k 1 1 3600\nECHO \"a b\"\nNONSENSE\n";
    let out = run("redis-cli", redis_cli(rig.at(), ""), input).await;
    assert_eq!(
        out, "PONG\n0\n2\n1\n-1\n3600\na b\nERR unknown command 'NONSENSE', with args beginning with: \n\n",
        "as redis-cli prints them"
    );
}

#[tokio::test]
async fn redis_cli_gives_the_password() {
    let rig = Rig::with(|config, dir| {
        let file = dir.join("password");
        std::fs::write(&file, "correct-horse\n").unwrap();
        config.resp.password_file = Some(file);
    });
    let out = run("redis-cli", redis_cli(rig.at(), "--no-auth-warning -a correct-horse PING"), "").await;
    assert_eq!(out, "PONG\n");
    let out = run("redis-cli", redis_cli(rig.at(), "-3 --no-auth-warning -a correct-horse PING"), "").await;
    assert_eq!(out, "PONG\n");
    let out = run("redis-cli", redis_cli(rig.at(), "PING"), "").await;
    assert_eq!(out, "NOAUTH Authentication required.\n\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_benchmark_runs_through() {
    let rig = Rig::start();
    for words in ["-q -n 2000 -c 20 -t ping", "-q -n 5000 -c 10 -P 16 CL.THROTTLE key:__rand_int__ 15 30 60 1"] {
        let out = run("redis-benchmark", redis_cli(rig.at(), words), "").await;
        assert!(out.contains("requests per second"), "{out}");
    }
    assert!(rig.metric("tollgate_resp_commands_total{command=\"cl.throttle\"}").await >= 5000.0); // whole pipelines
}

#[tokio::test]
async fn redis_py_with_its_defaults() {
    let rig = Rig::start();
    let arguments = vec![format!("{HERE}/redis_py.py"), rig.at().port().to_string()];
    assert_eq!(run("python", arguments, "").await, "ok\n");
}

#[tokio::test]
async fn ioredis_with_its_defaults() {
    node("ioredis.js").await;
}

#[tokio::test]
async fn node_redis_with_its_defaults() {
    node("node_redis.js").await;
}

async fn node(script: &str) {
    let is_here = Path::new(NODE_PACKAGES).is_dir();
    assert!(is_here, "the clients for Node are not here: script/setup installs them");
    let rig = Rig::start();
    let arguments = vec![format!("{HERE}/{script}"), rig.at().port().to_string()];
    assert_eq!(run("node", arguments, "").await, "ok\n");
}

/// redis-rs in this process: one connection that many share, its defaults, and the newer protocol.
#[tokio::test]
async fn redis_rs_with_its_defaults() {
    let rig = Rig::start();
    for (number, url) in
        [format!("redis://{}", rig.at()), format!("redis://{}/?protocol=resp3", rig.at())].iter().enumerate()
    {
        let client = redis::Client::open(url.as_str()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let pong: String = redis::cmd("PING").query_async(&mut connection).await.unwrap();
        assert_eq!(pong, "PONG");
        let throttle = |key: String| {
            let mut command = redis::cmd("CL.THROTTLE");
            command.arg(key).arg(1).arg(1).arg(3600);
            command
        };
        let key = format!("rs{number}");
        let five: Vec<i64> = throttle(key.clone()).query_async(&mut connection).await.unwrap();
        assert_eq!(five, [0, 2, 1, -1, 3600]);
        let mut pipe = redis::pipe();
        for _ in 0..20 {
            pipe.add_command(throttle(key.clone()));
        }
        let replies: Vec<Vec<i64>> = pipe.query_async(&mut connection).await.unwrap();
        assert_eq!(replies.iter().filter(|reply| reply[0] == 0).count(), 1);
        let mut atomic = redis::pipe();
        atomic.atomic();
        for _ in 0..3 {
            atomic.add_command(throttle(format!("{key}t")));
        }
        let replies: Vec<Vec<i64>> = atomic.query_async(&mut connection).await.unwrap();
        assert_eq!(replies.iter().map(|reply| reply[0]).collect::<Vec<_>>(), [0, 0, 1]);
        let mut zero = redis::cmd("CL.THROTTLE");
        zero.arg(&key).arg(0).arg(0).arg(60);
        let error = zero.query_async::<Vec<i64>>(&mut connection).await.unwrap_err();
        assert!(error.to_string().contains("Zero rates"), "{error}");
    }
}
