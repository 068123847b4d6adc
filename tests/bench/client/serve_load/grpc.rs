//! Calls over gRPC: as much of HTTP/2 (RFC 9113) as one call at a time needs.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

use crate::{Ask, Failure};

// Types of frames.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

// Flags of frames.
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The window of a connection before anybody changes it, and the largest one.
const WINDOW: i64 = 65_535;
const LARGEST: u32 = (1 << 31) - 1;
/// The largest payload of a frame that everybody takes.
const PAYLOAD: usize = 16_384;

/// A connection with the headers and the message of its call.
pub struct Connection {
    stream: BufReader<TcpStream>,
    headers: Vec<u8>,
    message: Vec<u8>,
    // The number of the next call.
    next: u32,
    // How many bytes the server still takes.
    window: i64,
    sent: Vec<u8>,
    payload: Vec<u8>,
}

/// The head of a frame.
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
}

/// Writes a frame.
fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
}

/// Writes a header field as it is (RFC 7541, 6.2.2); texts are below 127 bytes.
fn field(out: &mut Vec<u8>, name: &str, value: &str) {
    out.push(0);
    for text in [name, value] {
        out.push(text.len() as u8);
        out.extend(text.as_bytes());
    }
}

impl Connection {
    /// Connects for calls of a method, such as `/package.Service/Method`, with a serialized message.
    pub fn new(address: &str, path: &str, message: &[u8]) -> Result<Self, Failure> {
        if message.len() + 5 > PAYLOAD || path.len() > 126 {
            return Err("the message or the path is too long for one frame".into());
        }
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut headers = Vec::new();
        for (name, value) in [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", address),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ] {
            field(&mut headers, name, value);
        }
        let mut framed = vec![0];
        framed.extend((message.len() as u32).to_be_bytes());
        framed.extend(message);
        let mut begin = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        frame(&mut begin, SETTINGS, 0, 0, &[]);
        // All answers together stay below this, so that no further update is due.
        let more = LARGEST - WINDOW as u32;
        frame(&mut begin, WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
        stream.write_all(&begin)?;
        Ok(Self {
            stream: BufReader::new(stream),
            headers,
            message: framed,
            next: 1,
            window: WINDOW,
            sent: Vec::new(),
            payload: Vec::new(),
        })
    }

    /// Reads a frame, and answers those that belong to the connection.
    fn read(&mut self) -> Result<Frame, Failure> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head)?;
        let [a, b, c, kind, flags, stream @ ..] = head;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        let stream = u32::from_be_bytes(stream) & LARGEST;
        self.payload.resize(length, 0);
        self.stream.read_exact(&mut self.payload)?;
        let mut answer = Vec::new();
        match kind {
            SETTINGS if flags & ACK == 0 => frame(&mut answer, SETTINGS, ACK, 0, &[]),
            PING if flags & ACK == 0 => frame(&mut answer, PING, ACK, 0, &self.payload),
            WINDOW_UPDATE if stream == 0 => {
                if let [a, b, c, d] = self.payload[..] {
                    self.window += i64::from(u32::from_be_bytes([a, b, c, d]) & LARGEST);
                }
            }
            GOAWAY => {
                let text = String::from_utf8_lossy(self.payload.get(8..).unwrap_or_default());
                return Err(format!("the server ends the connection: {text}").into());
            }
            _ => {}
        }
        self.stream.get_mut().write_all(&answer)?;
        Ok(Frame {
            kind,
            flags,
            stream,
        })
    }
}

impl Ask for Connection {
    fn ask(&mut self) -> Result<(), Failure> {
        let call = self.next;
        self.next += 2;
        let length = self.message.len() as i64;
        while self.window < length {
            self.read()?;
        }
        self.window -= length;
        self.sent.clear();
        frame(&mut self.sent, HEADERS, END_HEADERS, call, &self.headers);
        frame(&mut self.sent, DATA, END_STREAM, call, &self.message);
        self.stream.get_mut().write_all(&self.sent)?;
        let mut answered = 0;
        loop {
            let Frame {
                kind,
                flags,
                stream,
            } = self.read()?;
            if stream != call {
                continue;
            }
            match kind {
                DATA => answered += self.payload.len(),
                RST_STREAM => return Err("the server gave up the call".into()),
                _ => {}
            }
            if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
                break;
            }
        }
        // A call that failed has headers alone.
        match answered {
            0 => Err("the call failed: an answer without a message".into()),
            _ => Ok(()),
        }
    }
}
