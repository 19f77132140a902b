//! The floor of `script/bench wire` for gRPC: bare tonic with its own server. It decodes Envoy's request and sends a
//! constant answer.
//!
//! Everything that is not the limiter is as in Tollgate: the same messages, `TCP_NODELAY`, Tokio's threads, the same
//! allocator, an answer of the same size.

use std::io::Write as _;

use tollgate_proto::rls::rate_limit_response::{Code, DescriptorStatus, RateLimit};
use tollgate_proto::rls::rate_limit_service_server::{RateLimitService, RateLimitServiceServer};
use tollgate_proto::rls::{RateLimitRequest, RateLimitResponse};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Echo;

#[tonic::async_trait]
impl RateLimitService for Echo {
    async fn should_rate_limit(
        &self,
        request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        std::hint::black_box(request.into_inner().descriptors.len());
        let current_limit = RateLimit { name: "users".to_owned(), requests_per_unit: 1_000_000, unit: 2 };
        let status = DescriptorStatus {
            code: Code::Ok.into(),
            current_limit: Some(current_limit),
            limit_remaining: 999_999,
            duration_until_reset: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
            ..DescriptorStatus::default()
        };
        let (overall_code, statuses) = (Code::Ok.into(), vec![status]);
        Ok(Response::new(RateLimitResponse { overall_code, statuses, ..RateLimitResponse::default() }))
    }
}

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let incoming = TcpIncoming::bind("127.0.0.1:0".parse()?)?.with_nodelay(Some(true));
        let mut out = std::io::stdout();
        writeln!(out, "listening on http://{}", incoming.local_addr()?)?;
        out.flush()?;
        // Accepted on a thread of the pool, as in any server that spawns its loop, and not on this one.
        let served = Server::builder().serve_with_incoming(RateLimitServiceServer::new(Echo), incoming);
        Ok(tokio::spawn(served).await??)
    })
}
