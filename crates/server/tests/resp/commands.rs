//! SPEC 3.4 over the wire: what clients ask before they ask anything else.

use std::sync::Arc;

use tollgate_lab::patience;

use crate::rig::{Caller, Rig, command, within};

const NOAUTH: &[u8] = b"-NOAUTH Authentication required.\r\n";
const WRONGPASS: &[u8] = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n";
const PASSWORD: &str = "correct horse battery";

fn send(words: &str) -> Vec<u8> {
    command(&words.split(' ').collect::<Vec<_>>())
}

fn guarded() -> Rig {
    Rig::with(|config, dir| {
        let file = dir.join("password");
        std::fs::write(&file, format!("{PASSWORD}\n")).unwrap();
        config.resp.password_file = Some(file);
    })
}

#[tokio::test]
async fn the_small_ones() {
    let rig = Rig::start();
    let mut caller = rig.caller().await;
    for (sent, expected) in [
        ("PING", "+PONG\r\n"),
        ("ping hello", "$5\r\nhello\r\n"),
        ("ECHO x", "$1\r\nx\r\n"),
        ("ECHO", "-ERR wrong number of arguments for 'echo' command\r\n"),
        ("SELECT 0", "+OK\r\n"),
        ("SELECT 7", "+OK\r\n"),
        ("SELECT x", "-ERR value is not an integer or out of range\r\n"),
        ("CONFIG GET save", "*0\r\n"),
        ("CONFIG GET", "-ERR wrong number of arguments for 'config|get' command\r\n"),
        ("CONFIG SET maxmemory 1", "-ERR unknown subcommand 'SET'. Try CONFIG HELP.\r\n"),
        ("COMMAND COUNT", ":22\r\n"),
        ("COMMAND DOCS", "*0\r\n"),
        ("COMMAND FOO", "-ERR unknown subcommand 'FOO'. Try COMMAND HELP.\r\n"),
        (
            "COMMAND INFO cl.throttle nothing",
            "*2\r\n*10\r\n$11\r\ncl.throttle\r\n:-5\r\n*2\r\n+write\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*0\r\n*0\r\n*0\r\n*0\r\n*-1\r\n",
        ),
        ("CLIENT GETNAME", "$-1\r\n"),
        ("CLIENT SETNAME me", "+OK\r\n"),
        ("CLIENT GETNAME", "$2\r\nme\r\n"),
        (
            "CLIENT SETNAME a\nb",
            "-ERR Client names cannot contain spaces, newlines or special characters, nor more than 256 bytes.\r\n",
        ),
        ("CLIENT SETINFO lib-name redis-py", "+OK\r\n"),
        ("CLIENT SETINFO LIB-VER 8.1.0", "+OK\r\n"),
        ("CLIENT SETINFO colour red", "-ERR Unrecognized option 'colour'\r\n"),
        ("CLIENT NO-EVICT ON", "+OK\r\n"),
        ("CLIENT NO-TOUCH ON", "+OK\r\n"),
        ("CLIENT SETNAME", "-ERR wrong number of arguments for 'client|setname' command\r\n"),
        (
            "CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none",
            "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.\r\n",
        ),
        ("CLIENT TRACKING ON", "-ERR unknown subcommand 'TRACKING'. Try CLIENT HELP.\r\n"),
        ("DEL a b", ":2\r\n"),
        ("UNLINK a", ":1\r\n"),
        ("HELLO 4", "-NOPROTO unsupported protocol version\r\n"),
        ("HELLO x", "-ERR Protocol version is not an integer or out of range\r\n"),
        ("HELLO 3 FOO", "-ERR Syntax error in HELLO option 'FOO'\r\n"),
        (
            "AUTH x",
            "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?\r\n",
        ),
        ("AUTH default x", "+OK\r\n"),
        ("RESET", "+RESET\r\n"),
        ("CLIENT GETNAME", "$-1\r\n"),
    ] {
        caller.says(&send(sent), expected.as_bytes()).await;
    }
    caller.send(&send("CLIENT ID")).await;
    let id: u64 = caller.reply().await.trim().trim_start_matches(':').parse().unwrap();
    caller.send(&send("CLIENT INFO")).await;
    let info = caller.reply().await;
    assert!(info.contains(&format!("id={id} addr=127.0.0.1:0 name= db=0 resp=2")), "{info}");
    caller.send(&send("INFO")).await;
    let info = caller.reply().await;
    assert!(info.contains("\r\nredis_version:") && info.contains("\r\nloading:0\r\n"), "{info}");
    caller.send(&send("TIME")).await;
    assert!(caller.reply().await.starts_with("*2\r\n$10\r\n"));
    caller.send(&send("COMMAND")).await;
    assert!(caller.reply().await.starts_with("*22\r\n*10\r\n$11\r\ncl.throttle\r\n"));
    caller.send(&send("QUIT")).await;
    assert_eq!(caller.rest().await.unwrap(), b"+OK\r\n");
}

/// R09: we are no Redis.
#[tokio::test]
async fn what_redis_has_and_we_have_not_is_unknown() {
    let rig = Rig::start();
    let mut caller = rig.caller().await;
    for name in ["EVAL", "KEYS", "FLUSHALL", "MODULE", "DEBUG", "SLAVEOF", "SCRIPT", "GET", "SET", "WATCH", "SUBSCRIBE"]
    {
        let expected = format!("-ERR unknown command '{name}', with args beginning with: 'a' 'b c' \r\n");
        caller.says(&command(&[name, "a", "b c"]), expected.as_bytes()).await;
    }
    let long = "x".repeat(300);
    let expected = format!("-ERR unknown command '{0}', with args beginning with: '{0}' \r\n", &long[..128]);
    caller.says(&command(&[&long, &long, "y"]), expected.as_bytes()).await;
    caller.says(&command(&["a\r\n+OK"]), b"-ERR unknown command 'a  +OK', with args beginning with: \r\n").await;
}

#[tokio::test]
async fn hello_chooses_the_version() {
    let rig = Rig::start();
    let mut caller = rig.caller().await;
    let version = env!("CARGO_PKG_VERSION");
    let pairs = |proto: u8| {
        format!(
            "$6\r\nserver\r\n$8\r\ntollgate\r\n$7\r\nversion\r\n${}\r\n{version}\r\n$5\r\nproto\r\n:{proto}\r\n$2\r\nid\r\n:1\r\n\
             $4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n",
            version.len()
        )
    };
    caller.says(&send("HELLO"), format!("*14\r\n{}", pairs(2)).as_bytes()).await;
    caller.says(&send("HELLO 3 SETNAME me"), format!("%7\r\n{}", pairs(3)).as_bytes()).await;
    caller.says(&send("CLIENT GETNAME"), b"$2\r\nme\r\n").await;
    caller.says(&send("CONFIG GET save"), b"%0\r\n").await;
    caller.says(&send("COMMAND DOCS"), b"%0\r\n").await;
    caller.says(&send("CL.THROTTLE k 1 1 60"), b"*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:60\r\n").await;
    caller.says(&send("HELLO 2"), format!("*14\r\n{}", pairs(2)).as_bytes()).await;
    caller.says(&send("CLIENT SETNAME x"), b"+OK\r\n").await;
    caller.says(&send("HELLO 3"), format!("%7\r\n{}", pairs(3)).as_bytes()).await;
    caller.says(&send("RESET"), b"+RESET\r\n").await;
    caller.says(&send("CLIENT GETNAME"), b"$-1\r\n").await;
}

#[tokio::test]
async fn without_the_password_nothing_is_answered() {
    let rig = guarded();
    let mut caller = rig.caller().await;
    for words in ["PING", "CL.THROTTLE k 1 1 1", "THROTTLE k 1 1 1", "TG.CHECK client_key=a", "COMMAND", "FOO", "DEL k"]
    {
        caller.says(&send(words), NOAUTH).await;
    }
    caller.says(&command(&["AUTH", "wrong"]), WRONGPASS).await;
    caller.says(&command(&["AUTH", "other", PASSWORD]), WRONGPASS).await;
    caller.says(&command(&["HELLO", "3", "AUTH", "default", "wrong"]), WRONGPASS).await;
    caller.send(&send("HELLO 3")).await;
    assert!(caller.reply().await.starts_with("-NOAUTH HELLO must be called with the client already authenticated"));
    caller.says(&send("PING"), NOAUTH).await;
    caller.says(&send("RESET"), b"+RESET\r\n").await;
    caller.says(&command(&["AUTH", PASSWORD]), b"+OK\r\n").await;
    caller.says(&send("PING"), b"+PONG\r\n").await;
    caller.says(&send("RESET"), b"+RESET\r\n").await;
    caller.says(&send("PING"), NOAUTH).await;
    caller.send(&command(&["HELLO", "3", "AUTH", "default", PASSWORD, "SETNAME", "me"])).await;
    assert!(caller.reply().await.starts_with("%7\r\n"));
    caller.says(&send("CLIENT GETNAME"), b"$2\r\nme\r\n").await;
}

#[tokio::test]
async fn a_new_password_is_read_without_a_restart() {
    let rig = guarded();
    std::fs::write(rig.dir.path().join("password"), "another password\n").unwrap();
    rig.hang_up.notify_one();
    let watch = patience::Watch::start();
    let mut caller = rig.caller().await;
    loop {
        caller.send(&command(&["AUTH", PASSWORD])).await;
        if caller.reply().await.as_bytes() == WRONGPASS {
            break;
        }
        assert!(watch.elapsed().as_secs() < 20, "the old password stays known");
        tokio::task::yield_now().await;
    }
    caller.says(&command(&["AUTH", "another password"]), b"+OK\r\n").await;
}

#[tokio::test]
async fn who_keeps_guessing_has_to_wait() {
    let rig = guarded();
    let mut caller = rig.caller().await;
    let guesses: Vec<u8> = (0..25).flat_map(|guess| command(&["AUTH", &format!("guess {guess}")])).collect();
    caller.send(&[guesses, command(&["AUTH", PASSWORD])].concat()).await;
    for _ in 0..20 {
        assert_eq!(caller.reply().await.as_bytes(), WRONGPASS);
    }
    for _ in 20..26 {
        let told = caller.reply().await;
        assert!(told.starts_with("-ERR too many wrong passwords came from this address; wait "), "{told}");
    }
    assert_eq!(rig.metric("tollgate_resp_wrong_passwords_total").await, 26.0);
    assert_eq!(rig.metric("tollgate_resp_errors_total").await, 26.0);
}

#[tokio::test]
async fn a_password_that_is_none_ends_the_start() {
    let error = std::panic::catch_unwind(|| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _in = runtime.enter();
        Rig::with(|config, dir| {
            let file = dir.join("password");
            std::fs::write(&file, "short\n").unwrap();
            config.resp.password_file = Some(file);
        })
    });
    assert!(error.is_err());
}

#[tokio::test]
async fn select_can_be_strict() {
    let rig = Rig::with(|config, _| config.resp.one_database = true);
    let mut caller = rig.caller().await;
    caller.says(&send("SELECT 0"), b"+OK\r\n").await;
    caller.says(&send("SELECT 1"), b"-ERR DB index is out of range\r\n").await;
}

/// Many at once, one connection each, numbered apart.
#[tokio::test]
async fn connections_have_numbers_of_their_own() {
    let rig = Arc::new(Rig::start());
    let ask = |rig: Arc<Rig>| async move {
        let mut caller: Caller = rig.caller().await;
        caller.send(&send("CLIENT ID")).await;
        caller.reply().await
    };
    let asked: Vec<_> = (0..20).map(|_| tokio::spawn(ask(rig.clone()))).collect();
    let mut ids = Vec::new();
    for id in asked {
        ids.push(within(id).await.unwrap());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 20);
}
