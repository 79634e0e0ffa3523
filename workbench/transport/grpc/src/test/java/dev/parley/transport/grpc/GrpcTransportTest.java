package dev.parley.transport.grpc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.Descriptors.MethodDescriptor;
import com.google.protobuf.Descriptors.ServiceDescriptor;
import dev.parley.encoding.protobuf.messages.TestModelOnlyText;
import dev.parley.spi.CallException;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Transport;
import dev.parley.spi.messages.Messages;
import dev.parley.transport.contract.TransportContract;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GrpcTransportTest extends TransportContract {
    private final Transport grpc = new GrpcTransport(GrpcUse.STANDARD);

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

    @ParameterizedTest
    @ValueSource(strings = {"x", "ž", "語", "\uD83D\uDE00"})
    void aLongErrorInAnyLanguageArrives(String character) {
        String message = character.repeat(10_000);
        Location at = freeLocation("m2");
        try (var server = grpc.serve("m2", Messages.CONTRACT, at, new Handler() {
                    @Override
                    public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
                        throw new CallException(CallException.Code.INVALID, message);
                    }
                });
                Neighbour neighbour = grpc.connect("m1", Messages.CONTRACT, at)) {
            assertThat(server).isNotNull();
            var request = new dev.parley.spi.messages.TestModelOnlyText("fail");
            assertThatThrownBy(() -> neighbour.call(Messages.ONLY_TEXT, request, Duration.ofSeconds(20)))
                    .isInstanceOfSatisfying(
                            CallException.class, e -> assertThat(e.code()).isEqualTo(CallException.Code.INVALID))
                    .hasMessageStartingWith(character.repeat(100));
        }
    }
}
