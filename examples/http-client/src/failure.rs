use std::fmt;

use wasip2::http::types::ErrorCode;

use crate::Url;

/// Why there is no answer, in words that a model can act on.
#[derive(Debug)]
pub enum Failure {
    /// The text is no `http` or `https` URL.
    Url(String),
    Header(String),
    /// The host of this sandbox refused the request.
    Denied(String),
    /// There was no connection to the far side: it has heard nothing.
    Unreachable(String),
    /// The connection broke, or no answer came in time: what the far side has heard is not known.
    Lost(String),
    Unusable(&'static str),
}

impl Failure {
    pub(crate) fn of(code: ErrorCode, url: &Url) -> Self {
        let authority = &url.authority;
        match code {
            ErrorCode::HttpRequestDenied | ErrorCode::DestinationIpProhibited => {
                Failure::Denied(format!("{authority} is not among the hosts that this tool may reach"))
            }
            ErrorCode::DestinationNotFound | ErrorCode::DnsError(_) => Failure::Unreachable(format!("{authority} has no address")),
            ErrorCode::ConnectionRefused => Failure::Unreachable(format!("{authority} refused the connection")),
            ErrorCode::ConnectionTimeout | ErrorCode::DnsTimeout => Failure::Unreachable(format!("{authority} did not answer in time")),
            ErrorCode::HttpResponseTimeout => Failure::Lost(format!("{authority} did not answer in time")),
            ErrorCode::TlsCertificateError | ErrorCode::TlsProtocolError | ErrorCode::TlsAlertReceived(_) => Failure::Unreachable(format!(
                "no secure connection to {authority}: its certificate or its TLS does not hold"
            )),
            ErrorCode::DestinationUnavailable | ErrorCode::DestinationIpUnroutable => {
                Failure::Unreachable(format!("there is no way to {authority}"))
            }
            // What Ambit's host says where it is no place that was granted.
            ErrorCode::InternalError(Some(message)) if message.starts_with("request denied") => Failure::Denied(message),
            ErrorCode::InternalError(Some(message)) => Failure::Lost(message),
            other => Failure::Lost(format!("the request to {authority} failed: {other:?}")),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Url(text) => write!(out, "not an http or https URL: {text}"),
            Failure::Header(reason) => write!(out, "a header can't be sent: {reason}"),
            Failure::Denied(reason) | Failure::Unreachable(reason) | Failure::Lost(reason) => out.write_str(reason),
            Failure::Unusable(reason) => write!(out, "the host's HTTP can't be used: {reason}"),
        }
    }
}

impl std::error::Error for Failure {}
