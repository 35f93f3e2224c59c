"""The desk: an OpenAI-compatible endpoint whose answers are given by a person or an agent, through files.

    DIR/
      inbox/0007-5f3a9c51e2d8/   one request; the number counts arrivals, the rest is the digest of its content
        request.md               to read: which file to write, tools, messages
        request.json             as it came, with the names of files in place of image data
        schema.json              where JSON is asked for: what the answer has to be valid under
        image-1.png
        answer.json              the answer that was taken, by whom and when; what clients are served from then on
      outbox/                    answers; the forms are in `answers.FORMS`
        0007-5f3a9c51e2d8.json
        0007-5f3a9c51e2d8.refused.md   why the file above was not taken; goes away when one is

A request is its content: who sends the same again, after a broken connection or a restart of the desk, waits for the
same answer or is served it at once. `wire` holds OpenAI's forms, `page` what is read, `answers` what is taken, `folder`
the files, `server` HTTP.

Non-goals: embeddings, the Responses API, access control beyond listening on this machine only, judging an answer beyond
what its request asked for.
"""
