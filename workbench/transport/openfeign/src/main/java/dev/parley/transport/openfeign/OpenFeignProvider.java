package dev.parley.transport.openfeign;

import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import java.util.Arrays;
import java.util.List;

/** {@code openfeign}, {@code openfeign-close} and {@code openfeign-tuned}, as {@link HttpUse} says. */
public final class OpenFeignProvider implements TransportProvider {
    @Override
    public List<Transport> transports() {
        return Arrays.stream(HttpUse.values())
                .<Transport>map(OpenFeignTransport::new)
                .toList();
    }
}
