package dev.rpcx.spring;

import dev.rpcx.Client;
import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import dev.rpcx.RPCXClient;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Makes the proxies of clients. The address of a service comes from the properties, otherwise from discovery, otherwise
 * from the annotation of the client.
 */
final class RPCXClients {
    private final Client client;
    private final RPCXProperties properties;
    private final @Nullable RPCXDiscovery discovery;

    RPCXClients(Client client, RPCXProperties properties, @Nullable RPCXDiscovery discovery) {
        this.client = client;
        this.properties = properties;
        this.discovery = discovery;
    }

    /**
     * Checks that each key of {@code rpcx.services} is a service of a client. Any other key would have no effect: its
     * name may be misspelt, or Spring may have read it as another name.
     *
     * @throws RPCXStartException if there is a key that no client has
     */
    static void check(RPCXProperties properties, CalledServices called) {
        for (String service : properties.services().keySet()) {
            if (!called.names().contains(service)) {
                throw new RPCXStartException(
                        "rpcx.services." + service + " (expected: a service that an @RPCXClient of this application "
                                + "names, which are: " + String.join(", ", called.names()) + ")",
                        "Correct or remove the key. A name with other characters than letters, digits, hyphens and "
                                + "dots must be written in brackets, since Spring removes such characters otherwise: "
                                + "rpcx.services[my/service]=host:port.",
                        null);
            }
        }
    }

    <T> T create(Class<T> type) {
        String service = type.getAnnotation(RPCXClient.class).remoteServerName();
        List<String> addresses = properties.services().get(service);
        if (addresses != null && !addresses.isEmpty()) {
            return client.create(
                    type,
                    Endpoints.of(
                            addresses.stream().map(a -> endpoint(service, a)).toArray(Endpoint[]::new)));
        }
        Endpoints found = discovery == null ? null : discovery.find(service);
        return found == null ? client.create(type) : client.create(type, found);
    }

    private static Endpoint endpoint(String service, String address) {
        int colon = address.lastIndexOf(':');
        String host = address.substring(0, Math.max(0, colon)).strip();
        // an IPv6 address stands in brackets, as elsewhere
        boolean isBracketed = host.startsWith("[") && host.endsWith("]");
        try {
            return new Endpoint(
                    isBracketed ? host.substring(1, host.length() - 1) : host,
                    Integer.parseInt(address.substring(colon + 1).strip()));
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(
                    "rpcx.services." + service + ": " + address + " (expected: host:port, several with commas between)",
                    e);
        }
    }
}
