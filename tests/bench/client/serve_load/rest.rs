//! Requests over HTTP/1.1.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use crate::{Ask, Failure};

/// A connection with the bytes of its request.
pub struct Connection {
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
    line: String,
    body: Vec<u8>,
}

impl Connection {
    /// Connects for a `POST` of a body.
    pub fn new(address: &str, path: &str, body: &[u8]) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let length = body.len();
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n");
        Ok(Self {
            stream: BufReader::new(stream),
            request: [head.as_bytes(), body].concat(),
            line: String::new(),
            body: Vec::new(),
        })
    }
}

impl Ask for Connection {
    fn ask(&mut self) -> Result<(), Failure> {
        self.stream.get_mut().write_all(&self.request)?;
        let (mut length, mut status) = (0, String::new());
        loop {
            self.line.clear();
            self.stream.read_line(&mut self.line)?;
            let text = self.line.trim_end();
            if status.is_empty() {
                text.clone_into(&mut status);
            }
            if text.is_empty() {
                break;
            }
            let (name, value) = text.split_once(':').unwrap_or(("", ""));
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse()?;
            }
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body)?;
        match status.split(' ').nth(1) {
            Some("200") => Ok(()),
            _ => Err(format!("{status}: {}", String::from_utf8_lossy(&self.body)).into()),
        }
    }
}
