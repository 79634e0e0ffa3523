package dev.rpcx.bench;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.DeserializationContext;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.deser.std.FromStringDeserializer;
import com.fasterxml.jackson.databind.module.SimpleModule;
import com.fasterxml.jackson.databind.ser.std.ToStringSerializer;
import com.sun.net.httpserver.HttpServer;
import feign.Feign;
import feign.Headers;
import feign.RequestLine;
import feign.http2client.Http2Client;
import feign.jackson.JacksonDecoder;
import feign.jackson.JacksonEncoder;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.http.HttpClient;
import java.time.LocalDateTime;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;

/**
 * Peer that calls with OpenFeign and Jackson over the JDK's HTTP client, with HTTP/1.1 connections that are kept alive.
 * Its server is the JDK's HTTP server on virtual threads.
 */
record FeignPeer() implements Peer {
    /** The calls, declared as Feign requires. */
    interface Echo {
        @RequestLine("POST /hello")
        @Headers("Content-Type: application/json")
        Map<String, String> hello(Map<String, String> text);

        @RequestLine("POST /records")
        @Headers("Content-Type: application/json")
        List<Row> records(List<Row> rows);
    }

    private static final TypeReference<List<Row>> ROWS = new TypeReference<>() {};

    /**
     * Returns a mapper that writes and reads dates as ISO texts. Jackson 2 maps no {@code java.time} types without a
     * module; its own module for them writes such texts too, if it is set to write no timestamps.
     */
    private static ObjectMapper json() {
        SimpleModule dates = new SimpleModule();
        dates.addSerializer(LocalDateTime.class, ToStringSerializer.instance);
        dates.addDeserializer(LocalDateTime.class, new FromStringDeserializer<>(LocalDateTime.class) {
            private static final long serialVersionUID = 1;

            @Override
            protected LocalDateTime _deserialize(String value, DeserializationContext context) {
                return LocalDateTime.parse(value);
            }
        });
        return new ObjectMapper().registerModule(dates);
    }

    @Override
    public String name() {
        return "openfeign";
    }

    @Override
    public boolean isAsynchronous() {
        return false;
    }

    @Override
    public AutoCloseable serve(int port) throws Exception {
        ObjectMapper json = json();
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 1024);
        serve(server, "/hello", body -> json.writeValueAsBytes(json.readValue(body, Map.class)));
        serve(server, "/records", body -> json.writeValueAsBytes(json.readValue(body, ROWS)));
        server.setExecutor(Executors.newVirtualThreadPerTaskExecutor());
        server.start();
        return () -> server.stop(0);
    }

    private interface Handler {
        byte[] reply(byte[] body) throws IOException;
    }

    private static void serve(HttpServer server, String path, Handler handler) {
        server.createContext(path, exchange -> {
            byte[] reply = handler.reply(exchange.getRequestBody().readAllBytes());
            exchange.getResponseHeaders().set("Content-Type", "application/json");
            exchange.sendResponseHeaders(200, reply.length);
            exchange.getResponseBody().write(reply);
            exchange.close();
        });
    }

    @Override
    public Caller connect(int port) {
        HttpClient http =
                HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        Echo echo = Feign.builder()
                .client(new Http2Client(http))
                .encoder(new JacksonEncoder(json()))
                .decoder(new JacksonDecoder(json()))
                .target(Echo.class, "http://127.0.0.1:" + port);
        return new Caller() {
            @Override
            public String hello(String text) {
                return echo.hello(Map.of("text", text)).getOrDefault("text", "");
            }

            @Override
            public List<Row> records(List<Row> rows) {
                return echo.records(rows);
            }

            @Override
            public void close() {
                http.close();
            }
        };
    }
}
