package dev.parley.transport.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.Descriptors.MethodDescriptor;
import com.google.protobuf.Descriptors.ServiceDescriptor;
import dev.parley.encoding.protobuf.messages.TestModelOnlyText;
import dev.parley.spi.Transport;
import dev.parley.spi.messages.Messages;
import dev.parley.transport.contract.TransportContract;
import java.util.List;
import org.junit.jupiter.api.Test;

class GrpcTransportTest extends TransportContract {
    private final Transport grpc = new GrpcTransport(false);

    @Override
    protected Transport transport() {
        return grpc;
    }

    @Test
    void methodsAreThoseOfTheProtoFile() {
        ServiceDescriptor service = TestModelOnlyText.getDescriptor().getFile().findServiceByName("Messages");
        List<String> published = service.getMethods().stream()
                .map(MethodDescriptor::getFullName)
                .map(name -> name.substring(0, name.lastIndexOf('.')) + "/" + name.substring(name.lastIndexOf('.') + 1))
                .toList();
        assertThat(dev.parley.transport.grpc.Methods.of(Messages.CONTRACT)
                        .byOperation()
                        .values())
                .extracting(m -> m.descriptor().getFullMethodName())
                .containsExactlyElementsOf(published);
    }
}
