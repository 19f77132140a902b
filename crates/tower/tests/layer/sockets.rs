//! HTTP/2 over a socket, and a service without a router.

use std::net::{IpAddr, SocketAddr};

use axum::body::Body;
use http::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tollgate_tower::PeerAddress;
use tower_layer::Layer;
use tower_service::Service;

use crate::support::{app, layer};

const TWO: &str = "rules: [{ name: orders, key_by: ip, limit: { requests: 2, window: 1h } }]";

#[tokio::test]
async fn streams_of_http2_are_limited_as_requests_are() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = app(layer(TWO)).into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, app).await });
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let mut statuses = Vec::new();
    for path in ["/api/orders/1", "/api/orders/2", "/api/orders/3", "/api/orders/a%2Fb"] {
        let request = Request::get(format!("http://app{path}")).body(Body::empty()).unwrap();
        statuses.push(sender.send_request(request).await.unwrap().status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 429, 400]);
}

/// Any service of `http` requests, as hyper serves it: the peer is an extension that the accept loop sets.
#[tokio::test]
async fn a_service_without_a_router_is_limited_by_its_raw_path() {
    #[derive(Clone)]
    struct Hello;
    impl Service<Request<Body>> for Hello {
        type Response = Response<Body>;
        type Error = std::convert::Infallible;
        type Future = std::future::Ready<Result<Response<Body>, std::convert::Infallible>>;
        fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
            std::task::Poll::Ready(Ok(()))
        }
        fn call(&mut self, _: Request<Body>) -> Self::Future {
            std::future::ready(Ok(Response::new(Body::from("hello"))))
        }
    }
    let mut limited = layer(TWO).layer(Hello);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let mut request = Request::get("/anything").body(Body::empty()).unwrap();
        request.extensions_mut().insert(PeerAddress(IpAddr::from([192, 0, 2, 1])));
        statuses.push(limited.call(request).await.unwrap().status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 429]);
}
