package dev.parley.transport.openfeign;

import java.util.List;

/** The variants differ in the HTTP client that sends what Feign asks, and in how long its connections live. */
enum HttpUse {
    /** What Spring Cloud takes with nothing else on the class path. */
    KEPT(
            "openfeign",
            "OpenFeign, Spring Cloud",
            "Feign's default client, HttpURLConnection: at most 5 kept alive for a host (http.maxConnections), others"
                    + " opened for the call; idle ones kept for the minute that Tomcat grants. They are the JVM's,"
                    + " like the application context with its encoder and decoder: a client that is made for one call"
                    + " takes a connection that an earlier one left",
            "Tomcat closes a connection after 100 requests (server.tomcat.max-keep-alive-requests)"),

    /** The other reading of zhang, which has a client, and so a connection, for each call. */
    CLOSED(
            "openfeign-close",
            "OpenFeign, Spring Cloud, a connection for each call",
            "one for each call, opened for it: Feign's default client, HttpURLConnection, with the request header"
                    + " Connection: close (RFC 9112, section 9.6). The application context with its encoder and"
                    + " decoder is the process's",
            "none"),

    /** Source: the reference of Spring Cloud OpenFeign, on feign-hc5. */
    POOLED(
            "openfeign-tuned",
            "OpenFeign, Spring Cloud, Apache HttpClient 5",
            "Apache HttpClient 5, pool of 1000 (Spring Cloud OpenFeign reference: feign-hc5 on the class path;"
                    + " spring.cloud.openfeign.httpclient.max-connections and max-connections-per-route, 200 and 50"
                    + " by default). The pool is the process's: a client that is made for one call takes a connection"
                    + " that an earlier one left",
            "no limit (server.tomcat.max-keep-alive-requests=-1)");

    final String variant;
    final String title;
    final String connections;
    final String keepAlive;

    HttpUse(String variant, String title, String connections, String keepAlive) {
        this.variant = variant;
        this.title = title;
        this.connections = connections;
        this.keepAlive = keepAlive;
    }

    boolean isPooled() {
        return this == POOLED;
    }

    /** Spring Boot properties of the server. */
    List<String> serverSettings() {
        return isPooled() ? List.of("server.tomcat.max-keep-alive-requests=-1") : List.of();
    }
}
