//! Findings of the check.

use tollgate_lab::redis::{RedisCluster, RedisServer, Sentinels};
use tollgate_store_redis::check::{COMMANDS, FindingLevel, acl_user};
use tollgate_store_redis::{Finding, Login, Password, RedisConfig, check};

use crate::rig::{PATIENT, config, consume, take, until, warm};

fn worst(findings: &[Finding]) -> FindingLevel {
    findings.iter().map(|finding| finding.level).max().expect("something is found")
}

fn told(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("{finding}\n")).collect()
}

/// A server with a user who has all rights but one.
fn restricted_config(server: &RedisServer, without: Option<&str>) -> RedisConfig {
    let command = acl_user("gate", "hunter2");
    let mut client = server.client();
    client.call(&["ACL", "DELUSER", "gate"]);
    let parts: Vec<&str> = command.split(' ').filter(|part| Some(*part) != without).collect();
    let reply = client.call(&parts);
    assert_eq!(reply.text(), Some(b"OK".as_slice()), "{reply:?}");
    let mut config = config(server.port());
    config.url.login = Some(Login { user: Some("gate".into()), password: Password::new("hunter2") });
    config
}

#[tokio::test]
async fn a_good_server_has_no_problem() {
    let server = RedisServer::start();
    let findings = check(&config(server.port())).await;
    assert!(worst(&findings) <= FindingLevel::Warning, "{}", told(&findings));
    let told = told(&findings);
    for part in
        ["reached without TLS", "Redis 7", "noeviction", "round trip", "clock is", "all scripts ran", "no replica"]
            .into_iter()
            .chain(["loses all usage of quotas (appendonly no, no save)"])
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    let keys = server.client().call(&["DBSIZE"]).integer().unwrap();
    assert!(keys < 20, "{keys} keys are left for a second");
}

#[tokio::test]
async fn persistence_is_reported_for_quotas() {
    let server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "everysec"]);
    let found = told(&check(&config(server.port())).await);
    assert!(found.contains("ok: usage of quotas survives a restart; a crash"), "{found}");
    let found = told(&check(&restricted_config(&server, None)).await);
    assert!(found.contains("ok: usage of quotas survives a restart (appendonly yes)"), "{found}");
}

#[tokio::test]
async fn the_documented_user_may_do_everything() {
    let server = RedisServer::start();
    let config = restricted_config(&server, None);
    let findings = check(&config).await;
    assert!(worst(&findings) <= FindingLevel::Warning, "{}", told(&findings));
    let primary = warm(config).await;
    assert!(take(&primary, consume(1), PATIENT).await.unwrap());
    until("heartbeat and policy", || primary.nodes() == Some(1) && primary.health().policy == "noeviction").await;
    primary.leave().await;
    let log = server.client().call(&["ACL", "LOG"]);
    assert_eq!(log.array().map(<[_]>::len), Some(0), "{log:?}");
}

#[tokio::test]
async fn every_missing_right_is_found() {
    let server = RedisServer::start();
    // The first three only matter in clusters and other databases, the name is a courtesy.
    let needed = COMMANDS.iter().filter(|name| !["asking", "client|setname", "cluster|slots", "select"].contains(name));
    for name in needed {
        let findings = check(&restricted_config(&server, Some(&format!("+{name}")))).await;
        assert_eq!(worst(&findings), FindingLevel::Problem, "without {name}: {}", told(&findings));
        assert!(told(&findings).contains("ACL SETUSER"), "without {name}: {}", told(&findings));
    }
}

#[tokio::test]
async fn problems_are_reported_and_passwords_are_not() {
    let server = RedisServer::start();
    server.client().call(&["CONFIG", "SET", "requirepass", "hunter2"]);
    let findings = check(&config(server.port())).await;
    assert!(told(&findings).contains("requires a password"), "{}", told(&findings));

    let mut wrong = config(server.port());
    wrong.url.login = Some(Login { user: None, password: Password::new("hunter3") });
    let findings = check(&wrong).await;
    assert!(told(&findings).contains("does not accept user or password"), "{}", told(&findings));
    assert!(!told(&findings).contains("hunter3"));

    drop(server);
    let findings = check(&wrong).await;
    assert!(told(&findings).contains("is the server running"), "{}", told(&findings));
}

#[tokio::test]
async fn eviction_weighs_as_much_as_configured() {
    let server = RedisServer::start_with(&["--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"]);
    let findings = check(&config(server.port())).await;
    assert_eq!(worst(&findings), FindingLevel::Warning, "{}", told(&findings));
    let strict = RedisConfig { require_noeviction: true, ..config(server.port()) };
    let findings = check(&strict).await;
    assert_eq!(worst(&findings), FindingLevel::Problem, "{}", told(&findings));
    assert!(told(&findings).contains("allkeys-lru"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_and_their_primary_are_looked_at() {
    let sentinels = Sentinels::start();
    let findings = check(&RedisConfig::new(sentinels.url().parse().unwrap())).await;
    let told = told(&findings);
    assert!(worst(&findings) <= FindingLevel::Warning, "{told}");
    assert_eq!(told.matches("as primary of mymaster").count(), 3, "{told}");
    assert!(told.contains("1 replica") && told.contains("all scripts ran"), "{told}");
    let unknown = sentinels.url().replace("mymaster", "nobody").parse().unwrap();
    let findings = check(&RedisConfig::new(unknown)).await;
    assert!(findings.iter().any(|finding| finding.what.contains("knows no master \"nobody\"")), "{findings:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_primary_of_a_cluster_is_looked_at() {
    let cluster = RedisCluster::start();
    let findings = check(&RedisConfig::new(cluster.url().parse().unwrap())).await;
    let told = told(&findings);
    assert!(worst(&findings) <= FindingLevel::Warning, "{told}");
    assert!(told.contains("a cluster of 3 primaries that have 16384 of 16384 slots"), "{told}");
    assert_eq!(told.matches("all scripts ran").count(), 3, "{told}");
    let one = format!("redis://127.0.0.1:{}", cluster.nodes[0].port()).parse().unwrap();
    let findings = check(&RedisConfig::new(one)).await;
    assert!(findings.iter().any(|finding| finding.what.contains("belongs to a cluster")), "{findings:?}");
}

#[tokio::test]
async fn a_layout_that_is_another_is_found() {
    let server = RedisServer::start();
    let mut config = config(server.port());
    config.url = format!("redis-cluster://127.0.0.1:{}", server.port()).parse().unwrap();
    let findings = check(&config).await;
    assert_eq!(worst(&findings), FindingLevel::Problem, "{}", told(&findings));
    config.url = format!("redis-sentinel://127.0.0.1:{}/main", server.port()).parse().unwrap();
    let findings = check(&config).await;
    assert!(told(&findings).contains("is that a Sentinel"), "{}", told(&findings));
    let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &server.port().to_string()]);
    let findings = check(&crate::rig::config(replica.port())).await;
    assert!(told(&findings).contains("is a replica"), "{}", told(&findings));
}
