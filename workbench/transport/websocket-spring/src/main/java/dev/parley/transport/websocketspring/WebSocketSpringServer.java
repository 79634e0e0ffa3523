package dev.parley.transport.websocketspring;

import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Transport;
import dev.parley.transport.springweb.SpringMvcServer;
import dev.parley.transport.websocketcalls.Answers;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.socket.CloseStatus;
import org.springframework.web.socket.TextMessage;
import org.springframework.web.socket.WebSocketSession;
import org.springframework.web.socket.config.annotation.EnableWebSocket;
import org.springframework.web.socket.config.annotation.WebSocketConfigurer;
import org.springframework.web.socket.config.annotation.WebSocketHandlerRegistry;
import org.springframework.web.socket.handler.TextWebSocketHandler;

/** A Boot application whose one WebSocket handler takes every operation. */
final class WebSocketSpringServer implements Transport.Server {
    private final Answers answers;
    private final SpringMvcServer server;

    WebSocketSpringServer(Contract contract, Location at, Handler handler) {
        answers = new Answers(contract, handler);
        try {
            server = new SpringMvcServer(
                    at, List.of(), context -> context.registerBean(Answers.class, () -> answers), Application.class);
        } catch (RuntimeException e) {
            answers.close();
            throw e;
        }
    }

    @Override
    public void close() {
        answers.close();
        server.close();
    }

    /** What a user of Spring's WebSocket API writes. */
    @Configuration(proxyBeanMethods = false)
    @EnableWebSocket
    static class Application implements WebSocketConfigurer {
        private final Answers answers;

        Application(Answers answers) {
            this.answers = answers;
        }

        @Override
        public void registerWebSocketHandlers(WebSocketHandlerRegistry registry) {
            registry.addHandler(new Requests(answers), WebSocketSpringTransport.PATH);
        }
    }

    /** Called by one thread at a time for each session. */
    private static final class Requests extends TextWebSocketHandler {
        private static final String INCOMING = "incoming";

        private final Answers answers;

        Requests(Answers answers) {
            this.answers = answers;
        }

        @Override
        public void afterConnectionEstablished(WebSocketSession session) {
            session.getAttributes().put(INCOMING, answers.incoming(new Client(Sessions.concurrent(session))));
        }

        @Override
        protected void handleTextMessage(WebSocketSession session, TextMessage message) {
            if (session.getAttributes().get(INCOMING) instanceof Answers.Incoming incoming) {
                incoming.received(message.getPayload(), message.isLast());
            }
        }

        @Override
        public boolean supportsPartialMessages() {
            return true;
        }
    }

    private record Client(WebSocketSession session) implements Answers.Peer {
        @Override
        public void send(String text) {
            try {
                session.sendMessage(new TextMessage(text));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        @Override
        public void close(int code, String reason) {
            try {
                session.close(new CloseStatus(code, reason));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }
}
