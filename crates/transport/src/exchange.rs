//! One request to a host: send a script, wait until it is ready, send the payload, read the answer.

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::HostError;
use crate::host::{Host, Shell};
use crate::script::{Marker, Script};

/// How much of a script's stderr is kept for a message, in bytes.
const COMPLAINT: usize = 2000;

/// What a script answered: its lines, without marker and without the closing `end`.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) lines: Vec<String>,
    script: Script,
    host: String,
}

impl Answer {
    /// Returns the first line that begins with `word`, without it.
    pub(crate) fn find(&self, word: &str) -> Option<&str> {
        self.lines.iter().find_map(|line| after(line, word))
    }

    /// Returns all lines that begin with `word`, without it.
    pub(crate) fn all<'a>(&'a self, word: &'a str) -> impl Iterator<Item = &'a str> {
        self.lines.iter().filter_map(move |line| after(line, word))
    }

    /// Returns the error for an answer that makes no sense.
    pub(crate) fn nonsense(&self) -> HostError {
        let message = if self.lines.is_empty() {
            "no answer".to_owned()
        } else {
            format!("unexpected answer {:?}", self.lines)
        };
        HostError::Unusable { host: self.host.clone(), doing: self.script.doing(), message }
    }
}

fn after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(word)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ') }
}

/// Sends one request and reads its answer.
///
/// Not cancel safe in the sense that the request may or may not be carried out when dropped; the requests
/// are made so that each may be sent again.
pub(crate) async fn exchange(
    host: &dyn Host,
    script: Script,
    header: &[u8],
    body: &[u8],
) -> Result<Answer, HostError> {
    let marker = Marker::random();
    let shell = host.open(script.text(&marker)).await?;
    let mut exchange = Exchange::new(host, script, marker, shell);
    let Some(lines) = exchange.run(header, body).await? else {
        return Err(exchange.end().await);
    };
    Ok(Answer { lines, script, host: host.name().to_owned() })
}

struct Exchange<'a> {
    host: &'a dyn Host,
    script: Script,
    marker: Marker,
    shell: Shell,
    complaint: Vec<u8>,
}

impl<'a> Exchange<'a> {
    fn new(host: &'a dyn Host, script: Script, marker: Marker, shell: Shell) -> Self {
        Self { host, script, marker, shell, complaint: Vec::new() }
    }

    /// Returns the answer's lines, or none if the output ended before the answer did.
    async fn run(&mut self, header: &[u8], body: &[u8]) -> Result<Option<Vec<String>>, HostError> {
        let (script, host) = (self.script, self.host.name());
        let Shell { stdin, stdout, stderr, .. } = &mut self.shell;
        let complaint = &mut self.complaint;
        let reader = LineReader::new(self.marker.as_str());
        let (ready, is_ready) = tokio::sync::oneshot::channel();

        // Dropped with its stream still open, a script could wait for more: so stdin is always shut.
        let write = async {
            if is_ready.await.is_ok() {
                // A script that has its answer early may not read the rest; its answer decides.
                let sent = async {
                    stdin.write_all(header).await?;
                    stdin.write_all(body).await?;
                    stdin.flush().await
                };
                if let Err(error) = sent.await {
                    tracing::debug!(host, doing = script.doing(), %error, "payload was not taken");
                }
            }
            if let Err(error) = stdin.shutdown().await {
                tracing::debug!(host, doing = script.doing(), %error, "stdin was closed before us");
            }
            std::future::pending::<()>().await;
        };
        let complain = async {
            let mut buffer = [0; 1024];
            while let Ok(n @ 1..) = stderr.read(&mut buffer).await {
                complaint.extend_from_slice(&buffer[..n]);
                let surplus = complaint.len().saturating_sub(COMPLAINT);
                complaint.drain(..surplus);
            }
            std::future::pending::<()>().await;
        };
        let read = async {
            let mut ready = Some(ready);
            let mut lines = Vec::new();
            let mut buffer = BytesMut::with_capacity(8192);
            loop {
                match stdout.read_buf(&mut buffer).await {
                    Ok(0) => return Ok(None),
                    Ok(_) => {}
                    Err(source) => {
                        return Err(HostError::Lost {
                            host: host.to_owned(),
                            doing: script.doing(),
                            source: Some(source.into()),
                        });
                    }
                }
                while let Some(line) = reader.next(&mut buffer) {
                    match line.as_str() {
                        "ready" => {
                            if let Some(ready) = ready.take() {
                                // The receiver lives as long as this future.
                                ready.send(()).unwrap_or_default();
                            }
                        }
                        "end" => return Ok(Some(lines)),
                        _ => lines.push(line),
                    }
                }
            }
        };
        tokio::select! {
            answer = read => answer,
            () = write => Ok(None),
            () = complain => Ok(None),
        }
    }

    /// Returns why there was no answer.
    async fn end(self) -> HostError {
        let (host, doing) = (self.host.name().to_owned(), self.script.doing());
        let Shell { stdin, stdout, mut stderr, exit } = self.shell;
        drop((stdin, stdout));
        match exit.await {
            Err(error) => error,
            Ok(exit) => {
                let mut complaint = self.complaint;
                let mut rest = Vec::new();
                // The script ended; a child of it that keeps stderr open must not keep us.
                let read = stderr.read_to_end(&mut rest);
                drop(tokio::time::timeout(std::time::Duration::from_millis(200), read).await);
                complaint.extend_from_slice(&rest);
                let text = String::from_utf8_lossy(&complaint);
                let message = match text.trim() {
                    "" => format!("the script ended without an answer ({exit:?})"),
                    text => format!("the script ended without an answer ({exit:?}): {text}"),
                };
                HostError::Unusable { host, doing, message }
            }
        }
    }
}

/// Cuts lines that carry the marker out of a stream that may hold anything else.
#[derive(Debug)]
pub(crate) struct LineReader {
    marker: Vec<u8>,
}

impl LineReader {
    pub(crate) fn new(marker: &str) -> Self {
        Self { marker: format!("{marker} ").into_bytes() }
    }

    /// Takes the next whole line of ours from the buffer, with what lies before it.
    pub(crate) fn next(&self, buffer: &mut BytesMut) -> Option<String> {
        loop {
            let end = memchr(buffer)?;
            let line = buffer.split_to(end + 1);
            let line = &line[..end];
            // Anywhere in the line: a start-up file may have printed without a newline.
            if let Some(at) = line.windows(self.marker.len()).position(|part| part == self.marker) {
                return Some(String::from_utf8_lossy(&line[at + self.marker.len()..]).into_owned());
            }
        }
    }
}

fn memchr(buffer: &[u8]) -> Option<usize> {
    buffer.iter().position(|byte| *byte == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_around_our_lines_is_dropped() {
        let reader = LineReader::new("bff");
        let mut buffer =
            BytesMut::from(&b"Welcome!\nno newlinebff ready\nbfe x\n\xffbff one two\nbff cut"[..]);
        assert_eq!(reader.next(&mut buffer).as_deref(), Some("ready"));
        assert_eq!(reader.next(&mut buffer).as_deref(), Some("one two"));
        assert_eq!(reader.next(&mut buffer), None);
        assert_eq!(&buffer[..], b"bff cut");
    }
}
