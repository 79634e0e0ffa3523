/**
 * What the technologies that carry REST over Helidon SE's WebServer have in common: the server's routes, what an
 * operation is as a request, and what a response is as a reply or an error.
 *
 * <p>Starting points: {@link dev.parley.transport.restcalls.RestServer} for servers,
 * {@link dev.parley.transport.restcalls.RestCall} for clients. A request runs on a virtual thread. Not a technology
 * itself; imports the SPI, the JSON encoding and Helidon.
 */
@NullMarked
package dev.parley.transport.restcalls;

import org.jspecify.annotations.NullMarked;
