/**
 * Requests and replies over one WebSocket a neighbour: JSON text messages, each with the number of the call it belongs to.
 *
 * <p>Starting points: {@link dev.parley.transport.websocket.WebSocketProvider}, {@link dev.parley.transport.websocket.Envelope}. Handlers
 * run on a virtual thread a request, so that replies may overtake each other. Imports the SPI, the JSON encoding and Helidon; no other
 * transport.
 */
@NullMarked
package dev.parley.transport.websocket;

import org.jspecify.annotations.NullMarked;
