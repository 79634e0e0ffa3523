/**
 * Requests and replies over WebSockets: one a neighbour, or one for each call. Helidon SE's WebServer, the JDK's HTTP
 * client.
 *
 * <p>Starting point: {@link dev.parley.transport.websocket.WebSocketProvider}. Imports the SPI, Helidon and what the
 * technologies on WebSocket share; no other transport.
 */
@NullMarked
package dev.parley.transport.websocket;

import org.jspecify.annotations.NullMarked;
