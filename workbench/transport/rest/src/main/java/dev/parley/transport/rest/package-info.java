/**
 * HTTP REST with JSON: Helidon SE's WebServer, the JDK's HTTP client.
 *
 * <p>Starting point: {@link dev.parley.transport.rest.RestTransport}. Threads: a request runs on its connection's virtual thread, a call on
 * the caller's. Never imports another transport.
 */
@NullMarked
package dev.parley.transport.rest;

import org.jspecify.annotations.NullMarked;
