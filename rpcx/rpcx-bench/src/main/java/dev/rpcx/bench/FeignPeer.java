package dev.rpcx.bench;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpServer;
import feign.Feign;
import feign.Headers;
import feign.RequestLine;
import feign.http2client.Http2Client;
import feign.jackson.JacksonDecoder;
import feign.jackson.JacksonEncoder;
import java.net.InetSocketAddress;
import java.net.http.HttpClient;
import java.util.Map;
import java.util.concurrent.Executors;

/** OpenFeign with Jackson over the JDK's HTTP client, HTTP/1.1 kept alive, against the JDK's HTTP server on virtual threads. */
record FeignPeer() implements Peer {
    /** The call as Feign wants it declared. */
    interface Echo {
        @RequestLine("POST /hello")
        @Headers("Content-Type: application/json")
        Map<String, String> hello(Map<String, String> text);
    }

    @Override
    public String name() {
        return "openfeign";
    }

    @Override
    public boolean carriesRows() {
        return false;
    }

    @Override
    public boolean isAsynchronous() {
        return false;
    }

    @Override
    public AutoCloseable serve(int port) throws Exception {
        ObjectMapper json = new ObjectMapper();
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 1024);
        server.createContext("/hello", exchange -> {
            byte[] reply = json.writeValueAsBytes(
                    json.readValue(exchange.getRequestBody().readAllBytes(), Map.class));
            exchange.getResponseHeaders().set("Content-Type", "application/json");
            exchange.sendResponseHeaders(200, reply.length);
            exchange.getResponseBody().write(reply);
            exchange.close();
        });
        server.setExecutor(Executors.newVirtualThreadPerTaskExecutor());
        server.start();
        return () -> server.stop(0);
    }

    @Override
    public Caller connect(int port) {
        HttpClient http =
                HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        Echo echo = Feign.builder()
                .client(new Http2Client(http))
                .encoder(new JacksonEncoder())
                .decoder(new JacksonDecoder())
                .target(Echo.class, "http://127.0.0.1:" + port);
        return new Caller() {
            @Override
            public String hello(String text) {
                return echo.hello(Map.of("text", text)).getOrDefault("text", "");
            }

            @Override
            public void close() {
                http.close();
            }
        };
    }
}
