//! Ways in, and ways out: TLS with certificates of callers, a Unix domain socket, old connections, the drain.

use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tollgate_lab::patience::until_async;
use tollgate_net::Address;
use tollgate_proto::v1::StreamChecksRequest;
use tonic::Code;

use crate::rig::{PATIENCE, RULES, Rig, about, check, client};
use crate::wire::{Wire, sent};

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    der: rustls::pki_types::CertificateDer<'static>,
}

struct Pair {
    pem: String,
    key_pem: String,
    der: rustls::pki_types::CertificateDer<'static>,
    key_der: Vec<u8>,
}

impl Authority {
    fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let own = params.self_signed(&key).unwrap();
        Authority { pem: own.pem(), der: own.der().clone(), issuer: Issuer::new(params, key) }
    }

    fn sign(&self, name: &str) -> Pair {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        let (key_pem, key_der) = (key.serialize_pem(), key.serialize_der());
        Pair { pem: signed.pem(), key_pem, der: signed.der().clone(), key_der }
    }

    /// Somebody who trusts it, and shows a certificate.
    fn connector(&self, shown: Option<&Pair>) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match shown {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let key = PrivateKeyDer::try_from(pair.key_der.clone()).unwrap();
                builder.with_client_auth_cert(vec![pair.der.clone()], key).unwrap()
            }
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        TlsConnector::from(Arc::new(config))
    }
}

#[tokio::test]
async fn over_tls_only_with_a_certificate_of_the_right_name() {
    let ours = Authority::new();
    let server = ours.sign("localhost");
    let rig = Rig::with(RULES, |config, dir| {
        let write = |name: &str, text: &str| {
            std::fs::write(dir.join(name), text).unwrap();
            Some(dir.join(name))
        };
        config.tls_cert = write("cert.pem", &server.pem);
        config.tls_key = write("key.pem", &server.key_pem);
        config.tls_client_ca = write("ca.pem", &ours.pem);
        config.tls_client_names = vec!["gateway.example".to_owned()];
    });
    let connect = async |connector: TlsConnector| {
        let stream = TcpStream::connect(rig.tcp()).await.unwrap();
        connector.connect(ServerName::try_from("localhost").unwrap(), stream).await
    };
    let gateway = ours.sign("gateway.example");
    let stream = connect(ours.connector(Some(&gateway))).await.unwrap();
    assert!(check(&mut client(Wire::over(stream).await), about("a")).await.allowed);

    let (stranger, forged) = (ours.sign("stranger.example"), Authority::new().sign("gateway.example"));
    for shown in [None, Some(&stranger), Some(&forged)] {
        let refused = match connect(ours.connector(shown)).await {
            Err(_) => true,
            // TLS 1.3: the client learns of it when it first reads.
            Ok(stream) => match timeout(PATIENCE, h2::client::handshake(stream)).await.unwrap() {
                Err(_) => true,
                Ok((_send, connection)) => timeout(PATIENCE, connection).await.is_ok(),
            },
        };
        assert!(refused);
    }
    let plain = TcpStream::connect(rig.tcp()).await.unwrap();
    let (_send, connection) = h2::client::handshake(plain).await.unwrap();
    assert!(timeout(PATIENCE, connection).await.is_ok(), "what is no TLS is closed");
}

#[tokio::test]
async fn over_a_unix_domain_socket() {
    let rig = Rig::with(RULES, |config, dir| config.grpc.address = Some(Address::Unix(dir.join("grpc.sock"))));
    let Address::Unix(path) = &rig.grpc else { panic!("a port") };
    let stream = UnixStream::connect(path).await.unwrap();
    let mut client = client(Wire::over(stream).await);
    assert!(check(&mut client, about("a")).await.allowed);
    assert_eq!(rig.end().await, 0);
}

#[tokio::test]
async fn an_old_connection_is_asked_to_go_and_its_calls_end_well() {
    let rig = Rig::with(RULES, |config, _| {
        config.grpc.max_connection_age = Duration::from_millis(300);
        config.net.drain_timeout = Duration::from_millis(300);
    });
    let wire = rig.wire().await;
    let mut client = client(wire.clone());
    assert!(check(&mut client, about("a")).await.allowed);
    let (ask, asked) = sent();
    let question = |id| StreamChecksRequest { id, request: Some(about("a")) };
    ask.send(question(1)).unwrap();
    let mut answers = client.stream_checks(asked).await.unwrap().into_inner();
    assert_eq!(answers.message().await.unwrap().unwrap().id, 1);
    // The stream is answered until the grace is over, then told to come back; the connection then ends.
    let mut id = 1;
    let end = loop {
        id += 1;
        let _ = ask.send(question(id));
        match timeout(PATIENCE, answers.message()).await.expect("an answer or an end") {
            Ok(answer) => assert_eq!(answer.expect("an answer").id, id),
            Err(status) => break status,
        }
    };
    assert_eq!(end.code(), Code::Unavailable, "{end:?}");
    until_async("the connection ends", PATIENCE, async || wire.is_closed()).await;
    rig.answers_others().await;
}

#[tokio::test]
async fn a_drain_answers_what_was_accepted_and_cuts_nobody() {
    let rig = Rig::start(RULES);
    let mut idle = rig.client().await;
    assert!(check(&mut idle, about("a")).await.allowed);
    let mut client = rig.client().await;
    let (ask, asked) = sent();
    ask.send(StreamChecksRequest { id: 1, request: Some(about("a")) }).unwrap();
    let mut answers = client.stream_checks(asked).await.unwrap().into_inner();
    assert_eq!(answers.message().await.unwrap().unwrap().id, 1);
    rig.drain.begin();
    ask.send(StreamChecksRequest { id: 2, request: Some(about("a")) }).unwrap();
    assert_eq!(answers.message().await.unwrap().unwrap().id, 2, "what comes at the last moment is answered");
    let end = timeout(PATIENCE, answers.message()).await.unwrap().unwrap_err();
    assert_eq!(end.code(), Code::Unavailable, "{end:?}");
    assert_eq!(rig.end().await, 0, "nobody had to be cut");
}
