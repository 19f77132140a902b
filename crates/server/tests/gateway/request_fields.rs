//! Fields of a request that servers would understand otherwise than the gateway: cookies in parts, trailers, and what only
//! proxies say.

use http::Request;
use tokio::net::TcpStream;

use crate::app::App;
use crate::rig::{Rig, within};

const RULES: &str = "rules: [{ key_by: ip, limit: { requests: 100, window: 1h } }]\n";

/// HTTP/2 splits cookies into fields of their own, so that they compress better; HTTP/1.1 has one (RFC 9113, 8.2.3).
#[tokio::test]
async fn cookies_of_http_2_are_one_field_for_a_server_of_http_1() {
    let app = App::start().await;
    let rig = Rig::start(RULES, &app.url());
    let stream = within(TcpStream::connect(rig.gateway)).await.unwrap();
    let (client, connection) = within(h2::client::handshake(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut client = within(client.ready()).await.unwrap();
    let request = Request::get(format!("http://{}/x", rig.gateway));
    let request = request.header("cookie", "a=1").header("x-own", "1").header("cookie", "b=2; c=3");
    let (response, _) = client.send_request(request.body(()).unwrap(), true).unwrap();
    assert_eq!(within(response).await.unwrap().status(), 200);
    connection.abort();
    let seen = app.seen().remove(0);
    assert_eq!(seen.matches("cookie: ").count(), 1, "{seen}");
    assert!(seen.contains("cookie: a=1; b=2; c=3\r\n"), "{seen}");
}

/// Servers that merge trailers into the header would believe the caller what only the gateway says, or take another
/// length, another identity or another method than the one that was decided about.
#[tokio::test]
async fn trailers_of_a_request_say_nothing_that_its_head_could_not() {
    let app = App::start().await;
    let rig = Rig::start(RULES, &app.url());
    let names = ["X-Sum", "X-Forwarded-For", "X-HTTP-Method-Override", "X_Real_IP", "Cookie", "Range", "Forwarded"];
    let trailers: String = names.iter().map(|name| format!("{name}: 7\r\n")).collect();
    let mut caller = rig.connect().await;
    caller
        .send(&format!(
            "POST /echo HTTP/1.1\r\nHost: a\r\nTrailer: {}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n{trailers}\r\n",
            names.join(", ")
        ))
        .await;
    let echoed = caller.answer().await.body;
    assert_eq!(echoed.to_lowercase(), "2\r\nhi\r\n0\r\nx-sum: 7\r\n\r\n", "what the server got");
}

/// Frameworks, and what stands in front of them, take the client's address, scheme or certificate from such fields.
#[tokio::test]
async fn what_only_proxies_say_is_believed_of_trusted_ones_alone() {
    let app = App::start().await;
    let fields = "X-Forwarded-Client-Cert: Subject=\"CN=admin\"\r\nX-Forwarded-User: admin\r\nX-Forwarded-Scheme: https\r\n\
                  X-Client-IP: 6.6.6.6\r\nTrue-Client-IP: 6.6.6.6\r\nCF-Connecting-IP: 6.6.6.6\r\nX_Client_IP: 6.6.6.6\r\n\
                  X-Cluster-Client-IP: 6.6.6.6\r\nFastly-Client-IP: 6.6.6.6\r\nX-Forwarded: for=6.6.6.6\r\n\
                  X-Original-Forwarded-For: 6.6.6.6\r\nX-Own: 1\r\nRemote-User: admin\r\nX-Remote-User: admin\r\n\
                  Fly-Client-IP: 6.6.6.6\r\nX-Azure-ClientIP: 6.6.6.6\r\nDO-Connecting-IP: 6.6.6.6\r\n\
                  X-Appengine-User-IP: 6.6.6.6\r\nX-Original-Host: admin\r\nX-Host: admin\r\nX_Api_Key: admin-key\r\n";
    let rig = Rig::start(RULES, &app.url());
    assert_eq!(rig.get_with("/x", fields).await.status, 200);
    let seen = app.seen().pop().unwrap();
    assert!(!seen.contains("6.6.6.6") && !seen.contains("admin") && !seen.contains("scheme"), "{seen}");
    assert!(seen.contains("x-own: 1"), "{seen}");

    let routes = format!(
        "upstreams: {{ api: {{ servers: {} }} }}\nroutes: [{{ upstream: api }}]\ntrusted_proxies: [127.0.0.0/8]\n",
        app.url()
    );
    let rig = Rig::routed(RULES, &routes);
    assert_eq!(rig.get_with("/x", fields).await.status, 200);
    let seen = app.seen().pop().unwrap();
    assert!(seen.contains("x-forwarded-user: admin") && seen.contains("true-client-ip: 6.6.6.6"), "{seen}");
    assert!(seen.contains("remote-user: admin") && seen.contains("x-original-host: admin"), "{seen}");
    assert!(!seen.contains("admin-key"), "a key that the gateway has not read: {seen}");
}
