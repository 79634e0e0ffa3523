package dev.parley.spi;

import java.util.List;
import java.util.ServiceLoader;

/**
 * What a technology's module provides through {@link ServiceLoader}: its variants, such as {@code grpc} and
 * {@code grpc-tuned}.
 */
public interface TransportProvider {
    /** All variants, each with a name of its own. Cheap: nothing is started. */
    List<Transport> transports();

    /** The variant of that name on this process's class path. */
    static Transport named(String name) {
        for (TransportProvider provider : ServiceLoader.load(TransportProvider.class)) {
            for (Transport transport : provider.transports()) {
                if (transport.technology().name().equals(name)) {
                    return transport;
                }
            }
        }
        throw new dev.parley.model.BadInput("technology", name, "one whose module is on the class path");
    }
}
