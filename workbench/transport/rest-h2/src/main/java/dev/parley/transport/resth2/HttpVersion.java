package dev.parley.transport.resth2;

import org.eclipse.jetty.client.HttpClient;
import org.eclipse.jetty.client.HttpClientTransport;
import org.eclipse.jetty.client.transport.HttpClientTransportOverHTTP;
import org.eclipse.jetty.http2.client.HTTP2Client;
import org.eclipse.jetty.http2.client.transport.HttpClientTransportOverHTTP2;

/** What is spoken from the first byte on: what the variants differ in. */
enum HttpVersion {
    HTTP_2(
            "rest-h2",
            "HTTP REST (JSON) over HTTP/2",
            "2 without TLS, with prior knowledge: the client begins with the preface (RFC 9113, section 3.3)",
            "one a neighbour, its streams shared by all callers (RFC 9113, section 9.1); Helidon allows 8192 streams"
                    + " at once",
            1),
    HTTP_1_1(
            "rest-jetty",
            "HTTP REST (JSON) over HTTP/1.1, Jetty's client",
            "1.1, kept alive",
            "one for each call under way, opened on demand, no limit that a trial reaches; kept when idle",
            // enough for every caller a trial may have
            10_000);

    final String variant;
    final String title;
    final String spoken;
    final String connections;
    private final int maxConnections;

    HttpVersion(String variant, String title, String spoken, String connections, int maxConnections) {
        this.variant = variant;
        this.title = title;
        this.spoken = spoken;
        this.connections = connections;
        this.maxConnections = maxConnections;
    }

    /** Not started. */
    HttpClient client() {
        HttpClient client = new HttpClient(transport());
        client.setMaxConnectionsPerDestination(maxConnections);
        client.setMaxRequestsQueuedPerDestination(Integer.MAX_VALUE);
        client.setFollowRedirects(false);
        client.setUserAgentField(null);
        // no cookie is kept, and none is looked for
        client.setHttpCookieStore(new org.eclipse.jetty.http.HttpCookieStore.Empty());
        return client;
    }

    private HttpClientTransport transport() {
        return this == HTTP_2 ? new HttpClientTransportOverHTTP2(new HTTP2Client()) : new HttpClientTransportOverHTTP();
    }
}
