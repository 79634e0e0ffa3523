/**
 * HTTP REST with JSON over HTTP/2 without TLS, and the same client and server over HTTP/1.1 beside it, so that what the
 * version of HTTP brings can be told from what the client does: Helidon SE's WebServer, Jetty's HTTP client.
 *
 * <p>Starting point: {@link dev.parley.transport.resth2.RestH2Provider}. Threads: a request runs on a virtual thread, a
 * call waits on the caller's, responses arrive on the client's. Imports the SPI, Jetty and what the technologies on
 * REST share; no other transport.
 */
@NullMarked
package dev.parley.transport.resth2;

import org.jspecify.annotations.NullMarked;
