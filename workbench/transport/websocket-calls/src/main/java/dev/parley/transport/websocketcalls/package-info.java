/**
 * What the technologies on WebSocket have in common: the JSON messages, each with the number of the call it belongs to,
 * the table of calls in flight and the handing over of requests to handlers.
 *
 * <p>Starting points: {@link dev.parley.transport.websocketcalls.WebSocketNeighbour} for clients, {@link
 * dev.parley.transport.websocketcalls.Answers} for servers. Handlers run on a virtual thread a request, so that replies
 * may overtake each other. Not a technology itself; imports the SPI and the JSON encoding.
 */
@NullMarked
package dev.parley.transport.websocketcalls;

import org.jspecify.annotations.NullMarked;
