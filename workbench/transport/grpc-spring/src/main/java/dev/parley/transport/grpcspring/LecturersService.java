package dev.parley.transport.grpcspring;

import dev.parley.encoding.protobuf.lecturers.Checked;
import dev.parley.encoding.protobuf.lecturers.Credentials;
import dev.parley.encoding.protobuf.lecturers.LecturersGrpc;
import dev.parley.encoding.protobuf.lecturers.NameAsked;
import dev.parley.encoding.protobuf.lecturers.NestedProfiles;
import dev.parley.encoding.protobuf.lecturers.Page;
import dev.parley.encoding.protobuf.lecturers.Profile;
import dev.parley.encoding.protobuf.lecturers.ProfileAsked;
import dev.parley.encoding.protobuf.lecturers.Profiles;
import dev.parley.encoding.protobuf.lecturers.Token;
import dev.parley.spi.Handler;
import dev.parley.spi.lecturers.Lecturers;
import io.grpc.stub.StreamObserver;
import org.springframework.grpc.server.service.GrpcService;

/** The contract {@code lecturers} as a gRPC service. */
@GrpcService
class LecturersService extends LecturersGrpc.LecturersImplBase {
    private final Answers answers;

    LecturersService(Handler handler) {
        this.answers = new Answers(handler);
    }

    @Override
    public void authenticate(Credentials request, StreamObserver<Token> observer) {
        answers.unary(Lecturers.AUTHENTICATE, request, observer);
    }

    @Override
    public void check(Token request, StreamObserver<Checked> observer) {
        answers.unary(Lecturers.CHECK, request, observer);
    }

    @Override
    public void flat(Page request, StreamObserver<Profiles> observer) {
        answers.unary(Lecturers.FLAT, request, observer);
    }

    @Override
    public void nested(Page request, StreamObserver<NestedProfiles> observer) {
        answers.unary(Lecturers.NESTED, request, observer);
    }

    @Override
    public void profile(ProfileAsked request, StreamObserver<Profile> observer) {
        answers.unary(Lecturers.PROFILE, request, observer);
    }

    @Override
    public void named(NameAsked request, StreamObserver<Profiles> observer) {
        answers.unary(Lecturers.NAMED, request, observer);
    }
}
