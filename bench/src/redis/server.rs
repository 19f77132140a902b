//! A Redis server and its counters.

use std::collections::HashMap;
use tollgate_lab::redis::{RedisClient, RedisServer};
use tollgate_resp::RespValue;

use crate::cores::Cores;
use crate::process;

/// One redis-server on the servers' core, without persistence.
pub struct Redis {
    server: RedisServer,
}

/// A reading of a server's counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct RedisCounters {
    /// CPU nanoseconds.
    pub cpu: u64,
    /// Script calls that clients sent.
    pub calls: u64,
    /// Keys that were looked up for reading: a bucket per charge, and now and then what a health probe looks at.
    pub reads: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Bytes that its data takes.
    pub memory: u64,
    pub keys: u64,
}

impl Redis {
    pub fn start(cores: &Cores) -> Redis {
        Redis { server: cores.on_server(RedisServer::start) }
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    pub fn port(&self) -> u16 {
        self.server.port()
    }

    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    pub fn client(&self) -> RedisClient {
        self.server.client()
    }

    /// Forgets all keys.
    pub fn flush(&self) {
        self.client().call(&["FLUSHALL"]);
    }

    pub fn figures(&self) -> RedisCounters {
        figures(&self.server)
    }
}

/// The counters of any server.
pub fn figures(server: &RedisServer) -> RedisCounters {
    let mut client = server.client();
    let keys = client.call(&["DBSIZE"]).integer().unwrap_or(0);
    let info = Info::read(&mut client);
    RedisCounters {
        cpu: process::cpu(server.pid()),
        calls: info.calls("evalsha") + info.calls("eval"),
        reads: info.number("keyspace_hits") + info.number("keyspace_misses"),
        bytes_in: info.number("total_net_input_bytes"),
        bytes_out: info.number("total_net_output_bytes"),
        memory: info.number("used_memory"),
        keys: u64::try_from(keys).unwrap_or(0),
    }
}

impl RedisCounters {
    /// What happened since.
    pub fn since(&self, then: &RedisCounters) -> RedisCounters {
        let less = |now: u64, then: u64| now.saturating_sub(then);
        RedisCounters {
            cpu: less(self.cpu, then.cpu),
            calls: less(self.calls, then.calls),
            reads: less(self.reads, then.reads),
            bytes_in: less(self.bytes_in, then.bytes_in),
            bytes_out: less(self.bytes_out, then.bytes_out),
            memory: less(self.memory, then.memory),
            keys: less(self.keys, then.keys),
        }
    }
}

/// What `INFO` says, line by line.
struct Info(HashMap<String, String>);

impl Info {
    fn read(client: &mut RedisClient) -> Info {
        match client.call(&["INFO", "everything"]) {
            RespValue::Text(text) => Info::parse(&String::from_utf8_lossy(&text)),
            _ => Info(HashMap::new()),
        }
    }

    fn parse(text: &str) -> Info {
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        Info(pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect())
    }

    fn number(&self, name: &str) -> u64 {
        self.0.get(name).and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    /// How often a command ran.
    fn calls(&self, command: &str) -> u64 {
        let figures = self.0.get(&format!("cmdstat_{command}"));
        let calls = figures.and_then(|figures| figures.strip_prefix("calls=")?.split(',').next()?.parse().ok());
        calls.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_what_a_server_says() {
        let info = Info::parse("# Memory\r\nused_memory:1234\r\ncmdstat_evalsha:calls=17,usec=9,failed_calls=0\r\n");
        assert_eq!((info.number("used_memory"), info.calls("evalsha"), info.calls("eval")), (1234, 17, 0));
    }
}
