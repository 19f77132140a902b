//! Servers that people run behind a gateway: nginx, Express on Node, hyper. Each tells what it has received.

mod hyper_api;
mod nginx;
mod node;

pub use hyper_api::HyperApi;
pub use nginx::NginxApi;
pub use node::{NodeApi, PACKAGES};

/// One of the servers.
pub enum RealApi {
    Nginx(NginxApi),
    Node(NodeApi),
    Hyper(HyperApi),
}

impl RealApi {
    /// One of each.
    pub async fn all() -> Vec<RealApi> {
        vec![
            RealApi::Nginx(NginxApi::start()),
            RealApi::Node(NodeApi::start().await),
            RealApi::Hyper(HyperApi::start().await),
        ]
    }

    pub fn name(&self) -> &'static str {
        match self {
            RealApi::Nginx(_) => "nginx",
            RealApi::Node(_) => "node",
            RealApi::Hyper(_) => "hyper",
        }
    }

    pub fn url(&self) -> String {
        match self {
            RealApi::Nginx(nginx) => nginx.url(),
            RealApi::Node(node) => node.url(),
            RealApi::Hyper(hyper) => hyper.url(),
        }
    }

    /// What it has received since the last call, each request as text; waits until it is as much as this. What would come
    /// too much shows in the next call.
    pub async fn seen(&self, count: usize) -> Vec<String> {
        match self {
            RealApi::Nginx(nginx) => nginx.seen(count).await,
            RealApi::Node(node) => node.seen(count).await,
            RealApi::Hyper(hyper) => hyper.seen(count).await,
        }
    }
}
