/**
 * Requests and replies over WebSockets on Spring Boot: Spring's WebSocket API on embedded Tomcat, called with its
 * standard client.
 *
 * <p>Starting point: {@link dev.parley.transport.websocketspring.WebSocketSpringProvider}. Imports the SPI, Spring and
 * what the technologies on WebSocket share; no other transport.
 */
@NullMarked
package dev.parley.transport.websocketspring;

import org.jspecify.annotations.NullMarked;
