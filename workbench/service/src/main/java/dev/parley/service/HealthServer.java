package dev.parley.service;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.function.Supplier;

/** {@code GET /health}, {@code GET /metrics} and {@code POST /shutdown} on a loopback port. */
final class HealthServer implements AutoCloseable {
    private final HttpServer http;

    HealthServer(int port, String name, Supplier<String> metrics, Runnable shutdown) throws IOException {
        http = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
        http.createContext(
                "/health",
                exchange -> answer(
                        exchange, "GET", "application/json", "{\"status\":\"UP\",\"service\":\"" + name + "\"}\n"));
        http.createContext(
                "/metrics",
                exchange -> answer(exchange, "GET", "text/plain; version=0.0.4; charset=utf-8", metrics.get()));
        http.createContext("/shutdown", exchange -> {
            if (answer(exchange, "POST", "application/json", "{\"status\":\"STOPPING\"}\n")) {
                shutdown.run();
            }
        });
        http.start();
    }

    int port() {
        return http.getAddress().getPort();
    }

    private static boolean answer(HttpExchange exchange, String method, String type, String body) throws IOException {
        try (exchange) {
            if (!exchange.getRequestMethod().equals(method)) {
                exchange.getResponseHeaders().set("Allow", method);
                exchange.sendResponseHeaders(405, -1);
                return false;
            }
            byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", type);
            exchange.sendResponseHeaders(200, bytes.length);
            exchange.getResponseBody().write(bytes);
            return true;
        }
    }

    @Override
    public void close() {
        http.stop(0);
    }
}
